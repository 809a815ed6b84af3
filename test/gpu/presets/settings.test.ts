import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'

const model = (of: object): Model => Model.parse({ id: 'org/m', source: '/models/m', ...of })

const cases: [of: object, message: RegExp][] = [
  [
    { engine: 'nope' },
    /'org\/m': there is no engine 'nope'. Known: gguf, llama-server, vllm, vllm-omni, sglang, sglang-diffusion, tei, infinity, whisper-server, /,
  ],
  [{ source: undefined }, /'org\/m': the engine 'gguf' cannot run it: it needs 'source'/],
  [{ engine: 'llama-server', source: undefined }, /needs 'source'/],
  [{ engine: 'custom' }, /needs 'command'/],
  [{ engine: 'custom', command: ['run', '--port', '8000'] }, /\{port\} or \{socket\}/],
  [{ engine: 'remote' }, /needs 'url'/],
  [{ engine: 'vllm', protocol: 'openai' }, /the engine 'vllm' has no setting 'protocol'/],
  [{ engine: 'tei', tasks: ['std/rerank'], devices: 2 }, /one process uses one GPU/],
  [{ engine: 'sglang', tasks: ['std/chat-completion', 'std/embeddings'] }, /Write two models/],
  [{ engine: 'speaches', source: '/m', tasks: ['std/audio-transcription'] }, /cache of the model hub/],
  [{ engine: 'kokoro-fastapi', source: 'k', tasks: ['std/audio-speech'] }, /needs 'source', the absolute path/],
  [
    { engine: 'remote', url: 'http://h', protocol: 'openai', tasks: ['slug/video-interpolation'] },
    /'remote' does not support the task 'slug\/video-interpolation'/,
  ],
  [{ engine: 'whisper-server', source: undefined }, /needs 'source', the ggml file/],
  [{ engine: 'whisper-server', concurrency: 2 }, /its 'concurrency' must be 1/],
  [{ engine: 'sd-server', source: undefined }, /needs 'source', the file or folder of a model/],
  [{ engine: 'sd-server', concurrency: 2 }, /its 'concurrency' must be 1/],
  [{ engine: 'sd-server' }, /'sd-server' does not support the task 'std\/chat-completion'.*slug\/text-to-image/],
  [
    { engine: 'whisper-server' },
    /'whisper-server' does not support the task 'std\/chat-completion'.*std\/audio-transcription, std\/audio-translation/,
  ],
  [{ tasks: ['std/audio-transcription'] }, /'gguf' does not support the task 'std\/audio-transcription'/],
  [{ concurrency: 257 }, /its 'concurrency' may be 256 at most/],
  [{ engine: 'vllm', kv_type: 'q8_0' }, /the engine 'vllm' has no setting 'kv_type'. Set its options with 'args'/],
  [
    { tasks: ['std/chat-completion', 'slug/text-to-image'] },
    /'gguf' does not support the task 'slug\/text-to-image'.*std\/score/,
  ],
  [{ engine: 'vllm', tasks: ['slug/text-to-video'] }, /'vllm' does not support the task 'slug\/text-to-video'/],
  [
    { engine: 'demo' },
    /'demo' does not support the task 'std\/chat-completion'. It supports: std\/audio-speech, .*slug\/text-to-image/,
  ],
  [{ engine: 'demo', tasks: ['std/score'] }, /'demo' does not support the task 'std\/score'/],
  [{ engine: 'python', source: 'org/m' }, /'source' must be an absolute path/],
  [{ engine: 'python', kv_type: 'f16' }, /the engine 'python' has no setting 'kv_type'/],
  [{ dtype: 'float16' }, /the engine 'gguf' has no setting 'dtype'/],
  [{ engine: 'piper', source: '/v/a.bin' }, /the absolute path of the .onnx file/],
  [{ engine: 'espeak-ng' }, /it has no 'source'/],
  [{ speculative: { draft_model: '/d.gguf' } }, /'gguf' cannot run it: it guesses from the text only/],
  [
    { engine: 'sglang', speculative: {} },
    /the engine 'sglang' has no setting 'speculative'. Set its options with 'args'/,
  ],
  [
    { tasks: ['std/embeddings'], speculative: {} },
    /'speculative' guesses tokens of answers, and the model writes none/,
  ],
  [{ engine: 'vllm', tasks: ['std/rerank'], speculative: {} }, /the model writes none. Remove it/],
  [{ engine: 'sglang', parking: 2 }, /it keeps its weights while it is parked. Write 'parking: 1'/],
  [{ parking: 'auto' }, /the engine 'gguf' cannot be parked. Remove 'parking'/],
  [{ nodes: 2 }, /the engine 'gguf' cannot span nodes. Remove 'nodes', or use the engine vllm/],
  [{ engine: 'llama-server', gpu_layers: 3 }, /the engine 'llama-server' has no setting 'gpu_layers'/],
]
test.each(cases)('a wrong or missing setting is named: %o', (of, message) =>
  expect(() => presetOf(model(of))).toThrow(message),
)
