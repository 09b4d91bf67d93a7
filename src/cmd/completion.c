/* The scripts that make bash and zsh ask `lowtide __complete`. */
#include <stdio.h>

#include "base/str.h"
#include "cmd/cmd.h"

static const char bash_script[] =
    "# bash completion for lowtide: every answer comes from lowtide itself.\n"
    "_lowtide() {\n"
    "    local IFS=$'\\n' cur=${COMP_WORDS[COMP_CWORD]} kind line\n"
    "    local -a answer\n"
    "    [[ $cur == [=:] ]] && cur=\n"
    "    COMPREPLY=()\n"
    "    mapfile -t answer < <(\"$1\" __complete bash -- \"${COMP_LINE:0:COMP_POINT}\" 2>/dev/null)\n"
    "    kind=${answer[0]}\n"
    "    case $kind in\n"
    "    files) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
    "    folders) compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n"
    "    words)\n"
    "        for line in \"${answer[@]:1}\"; do\n"
    "            COMPREPLY+=(\"${line%%$'\\t'*}\")\n"
    "        done\n"
    "        case ${COMPREPLY[0]} in *[=:]) compopt -o nospace ;; esac\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _lowtide lowtide\n";

static const char zsh_script[] =
    "#compdef lowtide\n"
    "# zsh completion for lowtide: every answer comes from lowtide itself.\n"
    "_lowtide() {\n"
    "    local kind line\n"
    "    local -a answer values texts\n"
    "    answer=(\"${(@f)$(\"${words[1]}\" __complete zsh -- \"${(j: :)words[1,CURRENT-1]} ${PREFIX}\" 2>/dev/null)}\")\n"
    "    kind=${answer[1]}\n"
    "    case $kind in\n"
    "    files) compset -P '--*='; _files ;;\n"
    "    folders) compset -P '--*='; _files -/ ;;\n"
    "    words)\n"
    "        for line in \"${(@)answer[2,-1]}\"; do\n"
    "            values+=(\"${line%%$'\\t'*}\")\n"
    "            texts+=(\"${line/$'\\t'/  }\")\n"
    "        done\n"
    "        (( ${#values} )) || return 1\n"
    "        case ${values[1]} in\n"
    "        *[=:]) compadd -S '' -l -d texts -a values ;;\n"
    "        *) compadd -l -d texts -a values ;;\n"
    "        esac ;;\n"
    "    esac\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _lowtide ]; then _lowtide \"$@\"; else compdef _lowtide lowtide; fi\n";

static int completion_run(const struct args *args, struct err *err)
{
    if (str_eq(args->pos[0], "bash"))
        fputs(bash_script, stdout);
    else if (str_eq(args->pos[0], "zsh"))
        fputs(zsh_script, stdout);
    else
        return err_set(err, LT_EUSAGE, "%s: no completion for that shell; write bash or zsh", args->pos[0]);
    return 0;
}

static const struct cmd_pos completion_pos[] = { { "SHELL", "bash|zsh", false, false }, { 0 } };
static const char *const completion_examples[] = {
    "lowtide completion bash > lowtide.bash", "Write the script that bash sources; distributions install it already.",
    NULL,
};

const struct cmd cmd_completion = {
    .name = "completion",
    .brief = "print the completion script for bash or zsh",
    .description = "Completes verbs, options, choices, files, the names of targets in the store and the numbers of running "
                   "processes. For one session of bash: eval \"$(lowtide completion bash)\".",
    .examples = completion_examples,
    .pos = completion_pos,
    .run = completion_run,
};
