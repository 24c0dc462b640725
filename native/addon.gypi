# What node-gyp compiles: binding.gyp includes it here, and the one that `farkv build` writes includes it there. Paths are
# from the folder of binding.gyp.
{
  # All is C: linked by the C compiler, for gyp's own choice, g++, may not be there.
  "make_global_settings": [["LINK", "$(CC)"]],
  "targets": [{
    "target_name": "farkv",
    "sources": ["<!@(node -p \"require('fs').readdirSync('native',{recursive:true}).filter(f=>f.endsWith('.c')&&!f.startsWith('test/')).map(f=>'native/'+f).join(' ')\")"],
    "defines": ["_GNU_SOURCE", "NAPI_VERSION=8"],
    "cflags": ["-include", "../native/node/old-glibc.h", "-std=c11", "-fno-strict-aliasing", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-pthread"],
    "cflags!": ["-O3"],
    "libraries": ["-ldl"],
    "conditions": [
      ["'<!(echo ${FARKV_SANITIZE:-none})'!='none'", {
        "cflags": ["-fsanitize=<!(echo ${FARKV_SANITIZE:-none})", "-fno-omit-frame-pointer"],
        "ldflags": ["-fsanitize=<!(echo ${FARKV_SANITIZE:-none})"]
      }]
    ]
  }]
}
