import { expect, test } from 'vitest'
import { faultClass, withoutLocations } from '../../../../core/tasks/protocols/engine-text.ts'

test.for<[text: string, shown: string]>([
  ['temperature must be below 2', 'temperature must be below 2'],
  ['cannot open /var/lib/infer/models/a.gguf: denied', 'cannot open [path removed]: denied'],
  ['File "/usr/lib/python3/a.py", line 3', 'File "[path removed]", line 3'],
  ['see ~/models/x and ../y', 'see [path removed] and [path removed]'],
  ['refused by http://10.0.0.3:8000/v1/chat?key=1.', 'refused by [address removed]'],
  ['connect 127.0.0.1:43121 failed', 'connect [address removed] failed'],
  ['localhost:8000 and [::1]:80', '[address removed] and [address removed]'],
  ['pointer 0x7ffd1234abcd', 'pointer [address removed]'],
  ["model 'org/name' takes 3/4 of it", "model 'org/name' takes 3/4 of it"],
])('%j is shown as %j', ([text, shown]) => expect(withoutLocations(text)).toBe(shown))

test('source locations are removed in linear time', () => {
  for (const text of ['/'.repeat(1e5), '/a'.repeat(1e5), '1.'.repeat(1e5), 'a:'.repeat(1e5), '['.repeat(1e5)])
    expect(withoutLocations(text).length).toBeLessThan(1e6)
})

test.for<[words: string, sentence: string | undefined]>([
  ['RuntimeError: CUDA out of memory', 'out of memory'],
  ['ValueError: Available memory on node 0 (16/23 GiB) on startup is less than desired CPU memory', 'out of memory'],
  ['ValueError: No available memory for the cache blocks.', 'out of memory'],
  [
    'error while loading shared libraries: libcudart.so: cannot open shared object file',
    'a program or file is missing',
  ],
  ['Error: `config.json` not found: No such file or directory (os error 2)', 'the model cannot be loaded'],
  [
    "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/m'",
    'the model cannot be loaded',
  ],
  ['CUDA error: device-side assert', 'the GPU reported an error'],
  [
    'ggml-backend.cpp:941: pre-allocated tensor (cache_k_l0) in a buffer (Vulkan0) that cannot run the operation (NONE)',
    'a tensor is larger than one buffer of the GPU can be',
  ],
  ['pre-allocated tensor (x) in a buffer (Vulkan0) that cannot run the operation (ROPE)', undefined],
  ['error: unknown argument: --foo', 'its arguments are wrong'],
  ["the prompt 'tell me about my patient' failed", undefined],
])('%j means %j', ([words, sentence]) => expect(faultClass(words)).toBe(sentence))
