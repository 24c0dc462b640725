#!/usr/bin/env bash
# Runs the container's root file system as a container would, for machines without docker: bash scripts/check-image.sh, as root. The root is the
# one that deploy/docker/Dockerfile copies; its user, variables, entry point and health check are read from that file. Then buildah builds the image
# from there on: the stage before needs an image of a registry. What a container runtime adds (networks, limits of memory) is not checked.
set -euo pipefail
name=check-image
. "$(dirname "$0")/own-root.sh"

if is_outside; then
  make_top
  bash scripts/make-image-root.sh "$root"
  enter
fi
node scripts/check-size.mjs deploy/docker/Dockerfile "$(du -sb "$root" | cut -f1)" || fail size
mount_own
for device in null zero urandom random; do touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"; done

dockerfile=deploy/docker/Dockerfile
user=$(sed -n 's/^USER //p' $dockerfile)
# Ports of their own: this machine's may be in use.
port=$((20000 + RANDOM % 9000))
mapfile -t variables < <(sed -n 's/^ENV //p' $dockerfile | tr ' ' '\n' | sed "s/:7400$/:$port/; s/:9100$/:$((port + 100))/")
words() { sed -n "s/^$1 \[\(.*\)\]$/\1/p" $dockerfile | tr -d '",'; }
read -ra entry < <(words ENTRYPOINT)
read -ra arguments < <(words CMD)
read -ra health < <(words 'HEALTHCHECK .* CMD')
run() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]}" chroot --userspec="$user" "$root" "$@"; }

say "$(du -sh --exclude=proc --exclude=dev "$root" | cut -f1), farkv $(run "${entry[@]}" --version), as $user"
run "${entry[@]}" "${arguments[@]}" 2> "$top/refused" && fail 'a server without secrets listens beyond loopback'
grep -q -- --insecure "$top/refused" || { cat "$top/refused"; fail 'what it says without secrets'; }
start() {
  # What the last server has written is not this one's.
  : > "$top/log"
  # Not by run, which would be a shell between: the signal is for the server.
  env -i "${variables[@]}" "$@" /usr/sbin/chroot --userspec="$user" "$root" "${entry[@]}" "${arguments[@]}" > "$top/log" 2>&1 & server=$!
  until grep -q ' is ready: ' "$top/log"; do
    kill -0 $server 2> /dev/null || { cat "$top/log"; fail 'the server has ended'; }
    sleep 0.2
  done
}
stop() {
  kill $server
  wait $server || { cat "$top/log"; fail "the server ended with $?"; }
}
run "${health[@]}" 2> /dev/null && fail 'healthy without a server'
start FARKV_INSECURE=true
run "${health[@]}" > /dev/null || fail 'the health check'
run /usr/bin/farkv ready > /dev/null || fail 'farkv ready'
run /usr/bin/farkv put --connect "127.0.0.1:$port" greeting hello > /dev/null
[ "$(run /usr/bin/farkv get --connect "127.0.0.1:$port" greeting)" = hello ] || fail 'put and get'
say "transports: $(sed -n 's/.*; data \(.*\); [0-9]* shards.*/\1/p' "$top/log")"
run /usr/bin/farkv doctor | sed -n 's/^.*[Ll]ibraries.*$/check-image: doctor: &/p' || true
stop
say 'a server ran without root and shell, was healthy, and ended with 0 at SIGTERM'

# With secrets, as docs/install.md has it for docker.
rm -rf "$root"/var/lib/farkv/*
install -d -o "${user%:*}" -g "${user#*:}" -m 700 "$root/secrets"
run "${entry[@]}" secrets init /secrets --server s1 > /dev/null || fail 'secrets init'
start FARKV_SECRETS=/secrets FARKV_ID=s1 FARKV_ADVERTISE=127.0.0.1
env -i "${variables[@]}" FARKV_SECRETS=/secrets /usr/sbin/chroot --userspec="$user" "$root" "${health[@]}" > /dev/null || fail 'the health check with secrets'
run /usr/bin/farkv put --secrets /secrets --connect "127.0.0.1:$port" greeting hello > /dev/null || fail 'put with secrets'
[ "$(run /usr/bin/farkv get --secrets /secrets --connect "127.0.0.1:$port" greeting)" = hello ] || fail 'get with secrets'
run /usr/bin/farkv get --connect "127.0.0.1:$port" greeting 2> /dev/null && fail 'get without secrets'
stop
start FARKV_SECRETS=/secrets FARKV_ID=s1 FARKV_ADVERTISE=127.0.0.1
[ "$(run /usr/bin/farkv get --secrets /secrets --connect "127.0.0.1:$port" greeting)" = hello ] || fail 'a value is gone after a restart'
stop
say 'so did one with secrets that it made itself, which has its values after a restart'

command -v buildah > /dev/null || { echo 'left out: the image (apt-get install buildah)'; exit; }
umount "$root/proc"
for mounted in pts shm null zero urandom random; do umount "$root/dev/$mounted"; done
mkdir "$top/context"
rm -rf "$root/secrets" "$root"/var/lib/farkv/*
mv "$root/var/lib/farkv" "$top/context/data"
mv "$root" "$top/context/root-of-image"
# The files of the stage before lie in the context here.
sed -n '/^FROM scratch/,$p' $dockerfile | sed '/^COPY/s/--from=build //; /^COPY/s# /\(root-of-image\|data\) # \1 #' > "$top/context/Dockerfile"
build=(env "TMPDIR=$top" buildah --storage-driver vfs --root "$top/containers" --runroot "$top/runroot")
"${build[@]}" bud --isolation chroot --format docker -t farkv "$top/context" > "$top/build.log" 2>&1 || { cat "$top/build.log"; fail 'buildah bud'; }
# What a container runtime reads of it: who runs in it, and how its health is asked for.
"${build[@]}" inspect --type image farkv > "$top/image.json"
config() { node -p "const { config } = JSON.parse(fs.readFileSync('$top/image.json', 'utf8')).Docker; $1"; }
image_user=$(config config.User)
[[ $image_user =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || fail "the image's user is '$image_user', by which nobody can tell that it is not root"
mapfile -t image_health < <(config 'config.Healthcheck.Test.join("\n")')
[ "${image_health[0]}" = CMD ] || fail "the image's health check is ${image_health[*]}"
container=$("${build[@]}" from farkv)
in_image() {
  "${build[@]}" run --isolation chroot --env FARKV_INSECURE=true --env "FARKV_LISTEN=127.0.0.1:$port" --env "FARKV_HTTP_LISTEN=127.0.0.1:$((port + 100))" "$container" "$@"
}
healthy() { in_image "${image_health[@]:1}" > "$top/health" 2>&1; }
! healthy || fail 'the image is healthy before its server runs'
in_image /usr/bin/farkv server > "$top/image.log" 2>&1 & runner=$!
until grep -qs ' is ready: ' "$top/image.log"; do
  kill -0 $runner 2> /dev/null || { cat "$top/image.log"; fail 'a server of the image has ended'; }
  sleep 0.2
done
# The server itself: buildah's processes are of root.
server=$(pgrep -f '/usr/lib/farkv/.* server$')
[ "$(stat -c %u:%g "/proc/$server")" = "$image_user" ] || fail "the server runs as $(stat -c %u:%g "/proc/$server"), the image says $image_user"
healthy || { cat "$top/health"; fail 'the health check of the image, of a server that serves'; }
in_image /usr/bin/farkv put --connect "127.0.0.1:$port" greeting image > /dev/null || fail 'put in the image'
[ "$(in_image /usr/bin/farkv get --connect "127.0.0.1:$port" greeting)" = image ] || fail 'get in the image'
kill -STOP "$server"
! healthy || fail 'the image is healthy though its server stands still'
kill -CONT "$server"
healthy || { cat "$top/health"; fail 'the health check of the image, of a server that goes on'; }
kill "$server"
wait $runner || { cat "$top/image.log"; fail "the server of the image ended with $?"; }
! healthy || fail 'the image is healthy though its server has ended'
say "$("${build[@]}" --version): the image was built; its server ran as $image_user, and '${image_health[*]:1}' told whether it served"
