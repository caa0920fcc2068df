# Read in place of the user's file, which it reads first. The directory of the startup files is
# ours until .zshrc has been read.
if [[ -n ${FLOW_ZDOTDIR+set} ]]; then
    ZDOTDIR=$FLOW_ZDOTDIR
else
    unset ZDOTDIR
fi
if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then
    . "${ZDOTDIR:-$HOME}/.zshenv"
fi
if [[ -n ${ZDOTDIR+set} ]]; then
    FLOW_ZDOTDIR=$ZDOTDIR
else
    unset FLOW_ZDOTDIR
fi
ZDOTDIR='@DIRECTORY@'
