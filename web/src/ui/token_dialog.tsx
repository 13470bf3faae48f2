// Asks for the server's token where it wants one.
import {useEffect, useRef} from 'preact/hooks';

import {setToken, wantsToken} from '../api/http';
import {readModels} from '../api/models';

export function TokenDialog() {
  const field = useRef<HTMLInputElement>(null);
  const isOpen = wantsToken.value;
  useEffect(() => {
    if (isOpen) field.current?.focus();
  }, [isOpen]);
  if (!isOpen) return null;
  const submit = (event: Event) => {
    event.preventDefault();
    const text = field.current?.value.trim();
    if (!text) return;
    setToken(text);
    void readModels();
  };
  return (
    <div class="token-dialog" role="dialog" aria-modal="true" aria-labelledby="token-title">
      <form onSubmit={submit}>
        <h2 id="token-title">This server wants a token</h2>
        <label for="token">It is the content of the file that <code>routing serve --token-file</code> was given.</label>
        <input id="token" type="password" autocomplete="off" ref={field} />
        <button class="main" type="submit">Go on</button>
      </form>
    </div>
  );
}
