# Follows an interactive POSIX shell: where its prompts are, how commands ended, and what its
# environment is. Read through ENV, after the user's own file of that name.
@USER_ENV@
__flow_environment='@ENVIRONMENT@'

# Runs in a subshell for every prompt, with the exit code of the last command. The file is complete
# when the mark appears.
__flow_ended() {
    {
        echo "#flow 1"
        export -p
        echo '#@NONCE@'
        set
        echo "#flow 1"
    } >|"$__flow_environment" 2>/dev/null
    printf '\033]133;D;%s;%s\007\033]133;A;%s\007' "$1" "$__flow_nonce" "$__flow_nonce"
}
# A shell that inherits the prompts knows neither the nonce nor the function.
__flow_nonce='@NONCE@'
PS1='${__flow_nonce:+$(__flow_ended "$?")}'"${PS1-\$ }"'@ESC@]133;B;${__flow_nonce-}@BEL@'
PS2='@ESC@]133;K;${__flow_nonce-}@BEL@'"${PS2-> }"
