# Read in place of the user's file, which it reads first. It is read as one, before the user's options
# hold, and what they show and say of ours is dropped.
{
    if [[ -n ${FLOW_ZDOTDIR+set} ]]; then
        ZDOTDIR=$FLOW_ZDOTDIR
        unset FLOW_ZDOTDIR
    else
        unset ZDOTDIR
    fi
    if [[ -r ${ZDOTDIR:-$HOME}/.zshrc ]]; then
        . "${ZDOTDIR:-$HOME}/.zshrc"
    fi
    {
        \builtin . '@DIRECTORY@/follow'
    } >/dev/null 2>&1
}
