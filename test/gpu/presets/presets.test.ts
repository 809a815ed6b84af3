import { describe, expect, test } from 'vitest'
import { features, Model } from '../../../core/models/model.ts'
import { generationTasks, tasks } from '../../../core/schemas/task.ts'
import { allFeatures, type LaunchFacts } from '../../../gpu/presets/preset.ts'
import { presetOf, presets, traitsOf } from '../../../gpu/presets/presets.ts'

const model = (of: object): Model => Model.parse({ id: 'org/m', source: '/models/m', ...of })
const facts: LaunchFacts = {
  slots: 3,
  threads: 2,
  gpus: 1,
  memoryShare: 0.5,
  bytes: 3 * 2 ** 30,
  backend: { gpu: 'cuda', folder: '/backends' },
}
const command = (of: object, more: Partial<LaunchFacts> = {}): string => {
  const one = model(of)
  return presetOf(one)
    .command(one, { ...facts, ...more })
    .join(' ')
}

describe('commands', () => {
  const cases: [name: string, model: object, facts: Partial<LaunchFacts>, has: string[], hasNot: string[]][] = [
    [
      'the built-in engine is this program',
      { tasks: ['std/embeddings', 'std/score'], context_length: 512, args: ['--extra'] },
      { gpus: 0, backend: null },
      [
        ' engine gguf --model /models/m --id org/m --task std/embeddings --task std/score --socket {socket} --threads 2 --parallel 3 --gpu off --memory 2952790016 --context 512 --extra',
      ],
      ['--port', '--backends'],
    ],
    [
      'the built-in engine on a GPU, with the booking minus the base memory of a process',
      {},
      {},
      ['--gpu cuda --backends /backends --memory 2147483648'],
      ['--context', '--gpu-layers', '--kv-type', '--no-mmap', '--mlock'],
    ],
    [
      'the built-in engine on two GPUs',
      { memory: '6GiB' },
      { gpus: 2, backend: { gpu: 'vulkan', folder: '/b' } },
      ['--gpu vulkan --backends /b --memory 6442450944'],
      [],
    ],
    [
      'the built-in engine with every setting',
      {
        gpu_layers: 10,
        flash_attention: 'on',
        kv_type: 'q8_0',
        threads: 7,
        batch_size: 256,
        mmap: false,
        mlock: true,
      },
      {},
      ['--threads 7', '--gpu-layers 10 --flash-attention on --kv-type q8_0 --batch 256 --no-mmap --mlock'],
      [],
    ],
    [
      'llama-server on a GPU',
      { engine: 'llama-server', context_length: 4096, upstream_id: 'up' },
      {},
      ['llama-server -m /models/m --host 127.0.0.1 --port {port} --alias up -np 3 -c 12288', '-ngl 999', '--jinja'],
      ['--embeddings', 'api-key'],
    ],
    ['llama-server on the CPU', { engine: 'llama-server' }, { gpus: 0 }, ['-ngl 0', '-t 2 -tb 2'], ['-c ']],
    [
      'llama-server for embeddings',
      { engine: 'llama-server', tasks: ['std/embeddings'], context_length: 512 },
      {},
      ['--embeddings -ub 512 -b 512'],
      ['--jinja'],
    ],
    [
      'llama-server for reranking',
      { engine: 'llama-server', tasks: ['std/rerank'] },
      {},
      ['--reranking'],
      ['--embeddings'],
    ],
    [
      'vLLM gets the booked share',
      { engine: 'vllm', devices: 2, context_length: 8192 },
      { gpus: 2, memoryShare: 0.456 },
      [
        'vllm serve /models/m --host 127.0.0.1 --port {port} --served-model-name org/m --tensor-parallel-size 2 --gpu-memory-utilization 0.45 --max-num-seqs 3 --max-model-len 8192',
      ],
      ['--runner', 'api-key'],
    ],
    [
      'vLLM on the processor gets the booked share of the main memory, however small',
      { engine: 'vllm', devices: 'cpu' },
      { gpus: 0, memoryShare: 0.00426 },
      ['--tensor-parallel-size 1 --gpu-memory-utilization 0.0042 --max-num-seqs 3'],
      [],
    ],
    ['vLLM never gets all memory', { engine: 'vllm' }, { memoryShare: 1 }, ['--gpu-memory-utilization 0.95'], []],
    ['vLLM for embeddings', { engine: 'vllm', tasks: ['std/embeddings'] }, {}, ['--runner pooling'], []],
    ['vLLM for transcription', { engine: 'vllm', tasks: ['std/audio-transcription'] }, {}, [], ['--runner', '--omni']],
    [
      'whisper-server on the CPU',
      { engine: 'whisper-server', tasks: ['std/audio-transcription'], args: ['-bs', '1'] },
      { gpus: 0 },
      [
        'whisper-server -m /models/m --host 127.0.0.1 --port {port} --inference-path /v1/audio/transcriptions -t 2 -l auto -ng -bs 1',
      ],
      ['key'],
    ],
    [
      'whisper-server on a GPU',
      { engine: 'whisper-server', tasks: ['std/audio-transcription'] },
      { gpus: 1 },
      ['-l auto'],
      ['-ng'],
    ],
    [
      'vLLM-Omni for videos',
      { engine: 'vllm-omni', tasks: ['slug/text-to-video'] },
      {},
      ['vllm serve /models/m --omni --host 127.0.0.1 --port {port} --served-model-name org/m'],
      ['--gpu-memory-utilization', '--tensor-parallel-size'],
    ],
    [
      'SGLang gets the booked share',
      { engine: 'sglang', context_length: 8192 },
      { gpus: 2 },
      [
        'sglang serve --model-path /models/m --host 127.0.0.1 --port {port} --served-model-name org/m --tp-size 2 --mem-fraction-static 0.5 --max-running-requests 3 --context-length 8192',
      ],
      ['--is-embedding', '--device'],
    ],
    [
      'SGLang on the processor gets the booked share of the main memory, however small',
      { engine: 'sglang', devices: 'cpu' },
      { gpus: 0, memoryShare: 0.00426 },
      ['--tp-size 1 --device cpu --mem-fraction-static 0.0042 --max-running-requests 3'],
      [],
    ],
    ['SGLang for reranking', { engine: 'sglang', tasks: ['std/rerank'] }, {}, ['--is-embedding'], []],
    [
      'SGLang for diffusion models',
      { engine: 'sglang-diffusion', tasks: ['slug/text-to-image'] },
      { gpus: 2 },
      [
        'sglang serve --model-path /models/m --host 127.0.0.1 --port {port} --num-gpus 2 --output-path  --input-save-path',
      ],
      ['--served-model-name', '--mem-fraction-static'],
    ],
    [
      'TEI, whose metrics take a free port',
      { engine: 'tei', tasks: ['std/rerank'] },
      {},
      [
        'text-embeddings-router --model-id /models/m --hostname 127.0.0.1 --port {port} --prometheus-port 0',
        '--max-concurrent-requests 6144 --max-client-batch-size 2048',
      ],
      [],
    ],
    [
      'Infinity on the CPU',
      { engine: 'infinity', tasks: ['std/embeddings'] },
      { gpus: 0 },
      [
        'infinity_emb v2 --model-id /models/m --served-model-name org/m',
        '--url-prefix /v1 --engine torch --device cpu',
      ],
      [],
    ],
    [
      'Speaches',
      { engine: 'speaches', source: undefined, tasks: ['std/audio-transcription'] },
      {},
      ['exec "$@" speaches uvicorn --factory speaches.main:create_app --host 127.0.0.1 --port {port}'],
      [],
    ],
    [
      'Kokoro-FastAPI',
      { engine: 'kokoro-fastapi', tasks: ['std/audio-speech'] },
      {},
      ['uvicorn api.src.main:app --host 127.0.0.1 --port {port}'],
      [],
    ],
    ['vLLM-Omni for speech', { engine: 'vllm', tasks: ['std/audio-speech'] }, {}, ['--omni'], ['--runner']],
    ['vLLM gets a hub name if there is no source', { engine: 'vllm', source: undefined }, {}, ['vllm serve org/m'], []],
    [
      'custom replaces its placeholders',
      {
        engine: 'custom',
        command: ['run', '{model}', '--as={id}', '-t', '{threads}', '--port', '{port}'],
        args: ['x'],
      },
      {},
      ['run /models/m --as=org/m -t 2 --port {port} x'],
      [],
    ],
    [
      'demo is this program with its own options',
      { engine: 'demo', tasks: ['slug/text-to-image'], args: ['--step-ms', '200'] },
      {},
      [' engine demo --id org/m --socket {socket} --step-ms 200'],
      ['--port'],
    ],
    [
      'the Python worker on the processor',
      { engine: 'python', tasks: ['std/audio-speech'], args: ['--x'] },
      { gpus: 0 },
      [
        'infer-worker --model /models/m --id org/m --socket {socket} --task std/audio-speech --threads 2 --device cpu --x',
      ],
      ['--memory', '--port'],
    ],
    [
      'the Python worker on a GPU, with every setting',
      {
        engine: 'python',
        tasks: ['slug/text-to-image'],
        threads: 7,
        dtype: 'bfloat16',
        quantization: 'nf4',
        offload: 'model',
        loras: ['/l/a.safetensors=0.5', '/l/b.safetensors'],
        compile: true,
      },
      { gpus: 1 },
      [
        `--threads 7 --device cuda --memory ${facts.bytes}`,
        '--dtype bfloat16 --quantization nf4 --offload model --lora /l/a.safetensors=0.5 --lora /l/b.safetensors=1 --compile',
      ],
      [],
    ],
    [
      'Piper with the voices beside its own',
      { engine: 'piper', source: '/v/a.onnx', tasks: ['std/audio-speech'] },
      {},
      ['python3 -m piper.http_server -m /v/a.onnx --data-dir /v --host 127.0.0.1 --port {port}'],
      [],
    ],
    [
      'espeak-ng behind this program',
      { engine: 'espeak-ng', source: undefined, tasks: ['std/audio-speech'] },
      {},
      [' engine espeak --id org/m --socket {socket}'],
      ['--port'],
    ],
    ['remote starts nothing', { engine: 'remote', url: 'https://h/v1' }, {}, [''], ['h']],
  ]
  test.each(cases)('%s', (_name, of, more, has, hasNot) => {
    for (const part of has) expect(command(of, more)).toContain(part)
    for (const part of hasNot) expect(command(of, more)).not.toContain(part)
  })

  test('no argument list contains a secret', () => {
    for (const preset of presets.values()) {
      const one = model({ engine: preset.name, url: 'http://h', command: ['run', '{port}'] })
      expect(preset.command(one, facts).join(' ')).not.toMatch(/key/i)
    }
  })
})

describe('a missing setting is reported with the name of the model', () => {
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
    [{ engine: 'llama-server', gpu_layers: 3 }, /the engine 'llama-server' has no setting 'gpu_layers'/],
  ]
  test.each(cases)('%o', (of, message) => expect(() => presetOf(model(of))).toThrow(message))
})

describe('traits', () => {
  test('the built-in engine declares only what it supports', () => {
    const { features: able } = traitsOf(model({}))
    expect(features.filter(feature => !able.has(feature)).sort()).toEqual([
      'audio',
      'best_of',
      'files',
      'images',
      'segments',
      'speakers',
      'suffix',
      'transcription_stream',
      'transparent_background',
      'variations',
      'voice_cloning',
      'words',
    ])
  })
  test('vLLM-Omni has its own fields for the recording of a voice', () => {
    const of = { engine: 'vllm', tasks: ['std/audio-speech'], features: ['voice_cloning'] }
    const { speech, features: able } = traitsOf(model(of))
    expect([speech!.reference, able.has('voice_cloning')]).toEqual([{ audio: 'ref_audio', text: 'ref_text' }, true])
    expect(traitsOf(model({ ...of, features: undefined })).features.has('voice_cloning')).toBe(false)
  })
  test('a Python model has the features of its family, and its environments in their order', () => {
    const hearing = model({ engine: 'python', tasks: ['std/audio-transcription'] })
    expect([...traitsOf(hearing).features]).toEqual(['segments', 'words', 'transcription_stream'])
    expect(presetOf(hearing).environments!(hearing)).toEqual(['speech', 'python'])
    const drawing = model({ engine: 'python', tasks: ['slug/text-to-image'] })
    expect([...traitsOf(drawing).features]).toEqual([])
    expect(presetOf(drawing).environments!(drawing)).toEqual(['python'])
    const own = model({ engine: 'python', tasks: ['std/audio-speech'], environment: '/srv/kokoro' })
    expect(presetOf(own).environments!(own)).toEqual(['/srv/kokoro'])
  })
  test('llama-server returns logits, and takes images only with a projector', () => {
    const plain = traitsOf(model({ engine: 'llama-server' }))
    expect(plain.rerankScores).toBe('logit')
    expect(plain.features.has('images')).toBe(false)
    expect(plain.features.has('repetition_penalty')).toBe(false)
    const seeing = traitsOf(model({ engine: 'llama-server', args: ['--mmproj', 'f'] }))
    expect(seeing.features.has('images')).toBe(true)
  })
  test('custom and remote have the features that are not silently ignored', () => {
    for (const of of [
      { engine: 'custom', command: ['{port}'] },
      { engine: 'remote', url: 'http://h' },
    ])
      expect([...traitsOf(model(of)).features]).toEqual([...allFeatures])
  })
  test('the configuration overrides the features and the model name sent to the engine', () => {
    const traits = traitsOf(model({ features: ['tools'], upstream_id: 'other' }))
    expect([...traits.features]).toEqual(['tools'])
    expect(traits.upstreamId).toBe('other')
  })
  test('every engine that offers scores has a route for them', () => {
    for (const preset of presets.values()) {
      const { routes: own } = preset.traits(model({ engine: preset.name, url: 'http://h', command: ['{port}'] }))
      if (!own['std/embeddings'] && !own['std/rerank']) continue
      const one = model({ engine: preset.name, url: 'http://h', command: ['{port}'], tasks: [...tasks] })
      const { scoreBy, routes } = preset.traits(one)
      if (routes['std/embeddings']) expect(routes[`std/${scoreBy}`]!.path).toMatch(/^\//)
    }
  })
  test('image and video tasks are available from the engines that accept any task', () => {
    for (const of of [
      { engine: 'demo' },
      { engine: 'custom', command: ['{port}'] },
      { engine: 'remote', url: 'http://h' },
    ]) {
      const { routes } = traitsOf(model({ ...of, tasks: [...generationTasks] }))
      for (const task of generationTasks)
        expect(routes[task]).toEqual({ protocol: 'infer-generation', path: '/v1/generate' })
    }
    const below = traitsOf(model({ engine: 'remote', url: 'http://h/video/v1', tasks: ['slug/text-to-video'] }))
    expect(below.routes['slug/text-to-video']!.path).toBe('/video/v1/generate')
  })
  test('remote and custom serve images and videos by the routes of OpenAI if `protocol` says so', () => {
    const there = { engine: 'remote', url: 'http://h/openai/v1', protocol: 'openai' }
    const { routes } = traitsOf(model({ ...there, tasks: ['slug/text-to-image', 'slug/image-to-video'] }))
    expect(routes['slug/text-to-image']).toEqual({ protocol: 'openai-images', path: '/openai/v1/images/generations' })
    expect(routes['slug/image-to-video']).toEqual({ protocol: 'openai-videos', path: '/openai/v1/videos' })
    const own = model({ engine: 'custom', command: ['{port}'], protocol: 'openai', tasks: ['slug/text-to-image'] })
    expect(presetOf(own).reportsRunning!(own)).toBe(false)
  })
  test('TEI gets the documents of a reranking as texts', () => {
    expect(traitsOf(model({ engine: 'tei', tasks: ['std/rerank'] }))).toMatchObject({ rerankField: 'texts' })
  })
  const bases: [url: string, path: string, origin: string][] = [
    ['https://api.example.com/v1', '/v1/chat/completions', 'https://api.example.com'],
    ['https://api.example.com/v1/', '/v1/chat/completions', 'https://api.example.com'],
    ['http://10.0.0.5:8000', '/v1/chat/completions', 'http://10.0.0.5:8000'],
    ['https://h/openai/v2', '/openai/v2/chat/completions', 'https://h'],
  ]
  test.each(bases)('remote %s gets requests at %s', (url, path, origin) => {
    const one = model({ engine: 'remote', url })
    expect(traitsOf(one).routes['std/chat-completion']!.path).toBe(path)
    expect(presetOf(one).address(one)).toBe(origin)
  })
  test("remote uses the key of its variable, the others the launch's", () => {
    const one = model({ engine: 'remote', url: 'http://h', api_key_env: 'THEIR_KEY' })
    expect(presetOf(one).key(one, 'launch', { THEIR_KEY: 'secret' })).toBe('secret')
    expect(presetOf(one).key(one, 'launch', {})).toBeUndefined()
    expect(presetOf(model({})).key(model({}), 'launch', {})).toBe('launch')
  })
})

describe('error responses', () => {
  const error = (message: string, type = '') => JSON.stringify({ error: { message, type } })
  const long = 'x'.repeat(3000)
  const cases: [engine: string, status: number, body: string, code: string, message: RegExp][] = [
    ['gguf', 400, error('temperature must be below 2'), 'invalid_value', /refused the request: temperature must be/],
    [
      'gguf',
      400,
      JSON.stringify({
        error: { code: 'context_length_exceeded', message: 'The prompt has 9 tokens, longer than the context of 8.' },
      }),
      'context_length_exceeded',
      /9 tokens/,
    ],
    [
      'llama-server',
      400,
      error('the request exceeds the available context size', 'exceed_context_size_error'),
      'context_length_exceeded',
      /exceeds/,
    ],
    [
      'llama-server',
      500,
      error('[json.exception.parse_error.101] parse error at line 1'),
      'invalid_json',
      /parse error/,
    ],
    [
      'llama-server',
      500,
      error('image input is not supported - hint: provide mmproj'),
      'unsupported_parameter',
      /image/,
    ],
    [
      'llama-server',
      500,
      error('input is too large to process. increase the physical batch size'),
      'context_length_exceeded',
      /too large/,
    ],
    [
      'llama-server',
      501,
      error('This server does not support embeddings', 'not_supported_error'),
      'unsupported_task',
      /embeddings/,
    ],
    ['llama-server', 503, error('Loading model', 'unavailable_error'), 'model_warming_up', /Loading model/],
    [
      'vllm',
      400,
      JSON.stringify({
        object: 'error',
        message: "This model's maximum context length is 2048 tokens.",
        type: 'BadRequestError',
      }),
      'context_length_exceeded',
      /2048/,
    ],
    ['whisper-server', 400, 'Invalid request', 'worker_error', /Invalid request/],
    [
      'whisper-server',
      500,
      JSON.stringify({ error: 'failed to process audio' }),
      'worker_error',
      /failed to process audio/,
    ],
    ['vllm', 422, JSON.stringify({ detail: [{ msg: 'bad' }] }), 'invalid_value', /bad/],
    ['vllm', 500, '', 'worker_error', /answered 500\./],
    ['vllm', 501, error('no'), 'worker_error', /501/],
    ['custom', 413, 'Payload Too Large', 'payload_too_large', /Too Large/],
    ['custom', 400, '', 'invalid_value', /\(400\)/],
    ['custom', 400, '<html><head><title>x</title></head><h1>Bad\nRequest</h1>', 'invalid_value', /: Bad Request$/],
    ['custom', 400, error(long), 'invalid_value', /^.{400,600}$/],
    ['custom', 400, error('two\nlines\u0007'), 'invalid_value', /two lines$/],
    ['custom', 400, 'null', 'invalid_value', /400/],
    ['remote', 401, error('Incorrect API key provided'), 'worker_error', /Incorrect API key/],
    ['remote', 429, error('slow down'), 'no_capacity', /slow down/],
    ['remote', 429, error('You exceeded your current quota', 'insufficient_quota'), 'worker_error', /quota/],
  ]
  test.each(cases)('%s with %i %s', (engine, status, body, code, message) => {
    const failure = presets.get(engine)!.failureOf(status, body)
    expect(failure.code).toBe(code)
    // For an internal error the message of the engine goes only to the log.
    expect(`${failure.message} ${failure.engineText ?? ''}`.trim()).toMatch(message)
  })
})
