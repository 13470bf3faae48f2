# Completion of routing in fish. `routing complete` knows what may come next; this hands over the words and shows the
# answer.

function __routing_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor | string unescape)
    set -l program (string replace --regex '^~/' "$HOME/" -- $words[1])
    set -l answer (command $program complete $words[2..] "$current" 2>/dev/null)
    set -q answer[1]; or return
    # Behind the last = of a word such as --data=FILE.
    set -l before (string replace --regex '[^=]*$' '' -- "$current")
    set -l path (string replace --regex '^.*=' '' -- "$current")
    switch $answer[-1]
        case :files
            for found in (__fish_complete_path "$path")
                echo -- "$before$found"
            end
        case :folders
            for found in (__fish_complete_directories "$path" '')
                echo -- "$before$found"
            end
    end
    if test (count $answer) -gt 1
        printf '%s\n' $answer[1..-2]
    end
end

complete --command routing --no-files --arguments '(__routing_complete)'
