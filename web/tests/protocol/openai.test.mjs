// OpenAI's own client, unchanged, over `routing serve`: it completes, streams and gets log-probabilities.
//
//   ROUTING_URL=http://127.0.0.1:8080 ROUTING_MODEL=quickstart node --test tests/protocol/openai.test.mjs
import assert from 'node:assert/strict';
import test from 'node:test';
import OpenAI from 'openai';

const model = process.env.ROUTING_MODEL;
const client = new OpenAI({
  baseURL: `${process.env.ROUTING_URL}/v1`,
  apiKey: process.env.ROUTING_TOKEN ?? 'none is asked for',
  maxRetries: 0,
});

test('models are listed and found by name', async () => {
  const names = [];
  for await (const each of client.models.list()) names.push(each.id);
  assert.ok(names.includes(model), names.join(', '));
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('a completion has choices, reasons and usage', async () => {
  const answer = await client.completions.create({model, prompt: 'line 1', max_tokens: 20, n: 2, seed: 1, temperature: 0.7});
  assert.equal(answer.object, 'text_completion');
  assert.equal(answer.choices.length, 2);
  assert.equal(answer.choices[1].index, 1);
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.equal(answer.usage.completion_tokens, 40);
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 40);
});

test('log-probabilities have a place for every token', async () => {
  const {choices: [choice]} = await client.completions.create(
    {model, prompt: 'line 1', max_tokens: 8, seed: 1, temperature: 0, logprobs: 3, echo: true});
  const {tokens, token_logprobs: values, top_logprobs: likeliest, text_offset: offsets} = choice.logprobs;
  assert.equal(tokens.length, values.length);
  assert.equal(tokens.length, likeliest.length);
  assert.equal(tokens.length, offsets.length);
  for (let i = 0; i < tokens.length; ++i) {
    assert.ok(values[i] <= 0);
    assert.equal(likeliest[i][tokens[i]], values[i]);
  }
  // Temperature 0 takes the likeliest.
  const last = tokens.length - 1;
  assert.equal(Math.max(...Object.values(likeliest[last])), values[last]);
});

test('a stream gives the same text, and its usage at the end', async () => {
  const asked = {model, prompt: 'line 2', max_tokens: 30, seed: 7};
  const whole = await client.completions.create(asked);
  let text = '';
  let usage = null;
  const reasons = [];
  for await (const chunk of await client.completions.create({...asked, stream: true, stream_options: {include_usage: true}})) {
    text += chunk.choices[0]?.text ?? '';
    if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].text);
  assert.deepEqual(reasons, ['length']);
  assert.equal(usage.completion_tokens, 30);
});

test('a stream that is broken off leaves the server as it was', async () => {
  const stream = await client.completions.create({model, max_tokens: 100000, seed: 1, stream: true});
  for await (const chunk of stream) {
    assert.ok(chunk.choices.length > 0);
    break;
  }
  stream.controller.abort();
  assert.equal((await client.completions.create({model, max_tokens: 3})).choices.length, 1);
});

test('errors come as the classes of the client', async () => {
  await assert.rejects(client.completions.create({model: 'nobody', prompt: 'x'}), OpenAI.NotFoundError);
  await assert.rejects(client.completions.create({model, prompt: 'x', max_tokens: -1}), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, 'max_tokens');
    assert.match(error.message, /max_tokens is -1/);
    return true;
  });
});
