import { describe, expect, test } from 'vitest'
import { lastError, openOutput } from '../../../gpu/launcher/outputs.ts'

const fed = (...chunks: (string | Buffer)[]) => {
  const output = openOutput({ lineBytes: 10, ringBytes: 30 })
  for (const chunk of chunks) output.push(Buffer.from(chunk))
  output.end()
  return output
}

describe('openOutput', () => {
  const cases: [name: string, chunks: (string | Buffer)[], lines: string[]][] = [
    ['lines of one chunk', ['a\nb\n'], ['a', 'b']],
    ['a line over several chunks', ['a', 'b', 'c\n', 'd\n'], ['abc', 'd']],
    ['a last line without an end', ['a\nb'], ['a', 'b']],
    ['empty lines count', ['\n\na\n'], ['', '', 'a']],
    ['Windows line ends', ['a\r\nb\r\n'], ['a', 'b']],
    ['a line that is overwritten keeps its last state', ['\r1/3\r2/3', '\r3/3\nx\ry\r\n'], ['3/3', 'y']],
    ['a long progress bar is not cut', ['\r1234567', '\r2234567', '\r323\n'], ['323']],
    ['a return at the end of a chunk', ['abc\r', 'd\n', 'e\r', '\n'], ['d', 'e']],
    ['a long line is cut', ['0123456789ABC\nx\n'], ['0123456789 … (cut)', 'x']],
    ['a long line in many chunks is cut once', ['01234', '56789', 'AB', 'CD', '\nx\n'], ['0123456789 … (cut)', 'x']],
    ['a character over two chunks', [Buffer.from([0xc3]), Buffer.from([0xa4, 10])], ['ä']],
    ['the oldest lines are dropped', ['aaaaaaaaaa\nbbbbbbbbbb\ncccccccccc\nd\n'], ['bbbbbbbbbb', 'cccccccccc', 'd']],
  ]
  test.each(cases)('%s', (_name, chunks, lines) => expect(fed(...chunks).lines()).toEqual(lines))

  test('each state of a line is reported at once, also in several chunks', () => {
    const seen: string[] = []
    const output = openOutput({ onUpdate: text => seen.push(text) })
    for (const chunk of ['\r |=> | 1/2', ' - 1it/s', '\r |==| 2/2 - 1it/s\ndone\n']) output.push(Buffer.from(chunk))
    expect(seen).toEqual([' |=> | 1/2', ' |=> | 1/2 - 1it/s', ' |==| 2/2 - 1it/s', 'done'])
  })

  test('a line of 100 MB uses only the memory of the part that is kept', () => {
    const output = openOutput()
    const block = Buffer.alloc(1 << 20, 'x')
    for (let at = 0; at < 100; at++) output.push(block)
    output.push(Buffer.from('\nend\n'))
    expect(output.lines().map(line => line.length)).toEqual([(64 << 10) + ' … (cut)'.length, 3])
  })

  test('endless empty lines use only the memory of those that are kept', () => {
    const output = openOutput()
    const block = Buffer.alloc(1 << 16, '\n')
    for (let at = 0; at < 4; at++) output.push(block)
    expect(output.lines().length).toBeLessThan(20_000)
  })

  test('secrets are masked before output is stored or sent', () => {
    const heard: string[] = []
    const output = openOutput({ secrets: ['hunter2hunter2'], onLine: line => heard.push(line.text) })
    output.push(Buffer.from('key hunter2hunter2, Bearer abc\nfrom http://me:word@host/ with sk-infer-0123456789ab\n'))
    const clean = ['key [redacted], [redacted]', 'from http:[redacted]host/ with [redacted]']
    expect(output.lines()).toEqual(clean)
    expect(heard).toEqual(clean)
    expect(output.entries().map(({ at }) => Math.abs(Date.now() - at) < 60_000)).toEqual([true, true])
  })

  test('repeated lines do not count as distinct', () => {
    expect(fed('a\na\na\n').changes).toBe(1)
    expect(fed('a\nb\na\n').changes).toBe(3)
  })

  test('each new state of a progress bar is a change, also before the bar ends its line', () => {
    const output = openOutput()
    const changesAfter = (text: string) => {
      output.push(Buffer.from(text))
      return output.changes
    }
    expect(['\rshards 1/4', '\rshards 2/4', '\rshards 2/4', '\rshards 3/4'].map(changesAfter)).toEqual([1, 2, 2, 3])
  })
})

describe('lastError', () => {
  const cases: [name: string, lines: string[], expected: string][] = [
    ['no output', [], ''],
    ['the last line', ['loading', 'bye', ''], 'bye'],
    [
      'the last line that reports an error',
      ['RuntimeError: CUDA out of memory', 'cleaning up', 'done'],
      'RuntimeError: CUDA out of memory',
    ],
    [
      'not a stack trace',
      ['TypeError: x is not a function', '    at main.js:1:1', '', 'Node.js v24.21.0'],
      'TypeError: x is not a function',
    ],
    ['not the lines of the shell', ['GGML_ASSERT failed: n > 0', 'Segmentation fault'], 'GGML_ASSERT failed: n > 0'],
    [
      'the memory that llama.cpp did not get, for which it then fails as a whole',
      [
        'ggml_vulkan: Device memory allocation of size 268435456 failed.',
        'ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory',
        '{"level":"error","message":"llama.cpp","text":"alloc_tensor_range: failed to allocate Vulkan0 buffer of size 268435456"}',
        '{"level":"error","message":"llama.cpp","text":"llama_init_from_model: failed to initialize the context"}',
        'Error: The model cannot chat: Failed to create context.',
      ],
      'ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory',
    ],
    [
      'the same of llama-server',
      [
        'ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: cudaMalloc failed: out of memory',
        'llama_model_load: error loading model: unable to allocate CUDA0 buffer',
        'llama_model_load_from_file_impl: failed to load model',
        'main: exiting due to model loading error',
      ],
      'llama_model_load: error loading model: unable to allocate CUDA0 buffer',
    ],
    [
      'the same of an engine that logs in JSON',
      [
        '{"level":"error","message":"llama.cpp","text":"alloc_tensor_range: failed to allocate CPU buffer of size 1024"}',
        'Error: The model cannot chat: Failed to create context.',
      ],
      '{"level":"error","message":"llama.cpp","text":"alloc_tensor_range: failed to allocate CPU buffer of size 1024"}',
    ],
    [
      'main memory that it did not get',
      [
        '{"level":"error","message":"llama.cpp","text":"llama_init_from_model: failed to initialize the context: std::bad_alloc"}',
        'Error: The model cannot chat: Failed to create context.',
      ],
      '{"level":"error","message":"llama.cpp","text":"llama_init_from_model: failed to initialize the context: std::bad_alloc"}',
    ],
    [
      'not memory that it can do without',
      ['ggml_cuda_host_malloc: failed to allocate 1.00 MiB of pinned memory: out of memory', 'failed to load model'],
      'failed to load model',
    ],
    [
      'not memory that was missing before another error',
      ['failed to allocate buffer', 'error: invalid argument: --x'],
      'error: invalid argument: --x',
    ],
    [
      'the root cause that the last errors refer to, of another process and far above',
      [
        '(VllmWorker-0 pid=38) ERROR [multiproc_executor.py:953] ValueError: Available memory is less than desired',
        '(EngineCore pid=24) ERROR [core.py:1510] Exception: WorkerProc failed. See stack trace for root cause.',
        ...Array.from({ length: 100 }, () => '  File "core_client.py", line 1120, in __init__'),
        'RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}',
      ],
      '(VllmWorker-0 pid=38) ERROR [multiproc_executor.py:953] ValueError: Available memory is less than desired',
    ],
    [
      'the last error when there is no root cause above',
      ['loading', 'RuntimeError: Engine core initialization failed. See root cause above.'],
      'RuntimeError: Engine core initialization failed. See root cause above.',
    ],
    [
      'an error of a Rust program with its causes',
      [
        'Error: Could not create backend',
        '',
        'Caused by:',
        '    0: Could not start backend',
        '    1: No such file or directory (os error 2)',
        '',
        'Stack backtrace:',
        '   0: <unknown>',
      ],
      'Error: Could not create backend: Could not start backend: No such file or directory (os error 2)',
    ],
    [
      'not the address that pydantic adds to an error',
      [
        'pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig',
        '  Value error, The model type `none` is unknown. [type=value_error, input_type=ArgsKwargs]',
        '    For further information visit https://errors.pydantic.dev/2.14/v/value_error',
      ],
      'Value error, The model type `none` is unknown. [type=value_error, input_type=ArgsKwargs]',
    ],
    ['colours and control characters are removed', ['\u001b[31merror: no\u001b[0m\u0007 memory'], 'error: no memory'],
  ]
  test.each(cases)('%s', (_name, lines, expected) => expect(lastError(lines)).toBe(expected))

  test('it is one short line', () => expect(lastError([`error ${'x'.repeat(5000)}`])).toHaveLength(300))
})
