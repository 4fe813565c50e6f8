# Words for stories.txt.
set -o pipefail

# field PATH [NAME]: what stands there in the object.
field() { kubectl get gadget "${2:-one}" -o "jsonpath={$1}"; }

# merge PATCH [NAME]: a merge patch.
merge() { kubectl patch gadget "${2:-one}" --type=merge -p "$1"; }

# switch GATE STATE ...: gates by their place in the definition.
switch() {
    local ops=""
    while [ $# -gt 0 ]; do
        ops+="${ops:+,}{\"op\":\"add\",\"path\":\"/spec/customFeatureGates/featureGates/$1/enabled\",\"value\":$2}"
        shift 2
    done
    kubectl patch crd gadgets.stable.example.com --type=json -p "[$ops]"
}

# nested STORED FOO QUX REQUEST: .spec.foo as it is after the request, with the gates in these states.
nested() {
    {
        switch 1 true 2 true &&
            kubectl patch gadget one --type=json -p "[{\"op\":\"add\",\"path\":\"/spec/foo\",\"value\":$1}]" &&
            if [ "$1" = '{}' ]; then merge '{"spec":{"foo":null}}'; fi &&
            switch 1 "$2" 2 "$3" &&
            kubectl patch gadget one --type=json -p "$4"
    } > nested.log 2>&1 || { cat nested.log; return 1; }
    field .spec.foo
}
ask='[{"op":"add","path":"/spec/foo","value":{"baz":2,"qux":3}}]'

# until_true COMMAND: waits until the command succeeds; fails after two minutes.
until_true() {
    local end=$((SECONDS + 120))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# ends_with TEXT: whether the last line of watched.log ends with it.
ends_with() { [[ "$(tail -n 1 watched.log)" == *" $1" ]]; }

# watched COMMAND: the events of a watch of one object while the command runs.
watched() {
    kubectl get gadget one --watch --output-watch-events -o 'jsonpath={.type} {.object.spec.image} {.object.metadata.generation}{"\n"}' > watched.log 2>&1 &
    local watcher=$! state
    until_true grep -q . watched.log
    eval "$1" > /dev/null 2>&1
    # The last event shows the object as it is now.
    state="$(field '{.spec.image} {.metadata.generation}')"
    until_true ends_with "$state"
    kill "$watcher"
    wait "$watcher" 2> /dev/null
    cat watched.log
}

# Three servers on one store, for shared.txt.
ours() { kubectl --kubeconfig "$OURS" "$@"; }
off() { kubectl --kubeconfig "$OFF" "$@"; }
real() { kubectl --kubeconfig "$REAL" "$@"; }

# serve KIND SERVER ...: whether the servers serve the kind.
serve() {
    local kind="$1" server
    shift
    for server in "$@"; do "$server" get "$kind" > /dev/null 2>&1 || return 1; done
}

# all KIND NAME: whether all servers show the same, managers included.
all() {
    local server
    for server in ours off real; do
        "$server" get "$@" -o json --show-managed-fields > "$server.json" || return 1
    done
    if diff ours.json real.json && diff off.json real.json; then echo same; fi
}
widgets() { sed -e 's/gadget/widget/g; s/Gadget/Widget/; s/\[ga\]/[wi]/' "$1"; }
[ -e widgets.yaml ] || { widgets gadgets.yaml > widgets.yaml; widgets one.yaml > wone.yaml; }
