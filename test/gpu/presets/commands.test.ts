import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import type { Sizing } from '../../../gpu/engines/gguf/sizing.ts'
import type { LaunchFacts } from '../../../gpu/presets/preset.ts'
import { presetOf, presets } from '../../../gpu/presets/presets.ts'

const model = (of: object): Model => Model.parse({ id: 'org/m', source: '/models/m', ...of })
const facts: LaunchFacts = {
  slots: 3,
  threads: 2,
  gpus: 1,
  memoryShare: 0.5,
  freeShare: 0.5,
  bytes: 3 * 2 ** 30,
  backend: { gpu: 'cuda', folder: '/backends' },
}
const command = (of: object, more: Partial<LaunchFacts> = {}): string => {
  const one = model(of)
  return presetOf(one)
    .command(one, { ...facts, ...more })
    .join(' ')
}

const plan = { layout: { gpuLayers: 43, context: 8192, encoderContext: 2048 } as Sizing }

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
    'the built-in engine on two GPUs with a configured amount for which there is no layout',
    { memory: '6GiB' },
    { gpus: 2, bytes: 6 * 2 ** 30, backend: { gpu: 'vulkan', folder: '/b' } },
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
  ['the built-in engine that guesses tokens', { speculative: { tokens: 5 } }, {}, [' --guess 5'], []],
  [
    'llama-server that guesses tokens from the text',
    { engine: 'llama-server', speculative: {} },
    {},
    ['--spec-type ngram-simple --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 8'],
    ['-md'],
  ],
  [
    'llama-server with a draft model on a GPU',
    { engine: 'llama-server', speculative: { draft_model: '/d.gguf', tokens: 4 } },
    {},
    ['--spec-type draft-simple -md /d.gguf --spec-draft-n-max 4 -ngld all'],
    [],
  ],
  [
    'llama-server with a draft model on the processor',
    { engine: 'llama-server', speculative: { draft_model: '/d.gguf' } },
    { gpus: 0 },
    ['-ngld 0'],
    [],
  ],
  [
    'vLLM that guesses tokens from the text',
    { engine: 'vllm', speculative: {} },
    {},
    ['--speculative-config {"method":"ngram","prompt_lookup_max":4,"num_speculative_tokens":8}'],
    [],
  ],
  [
    'vLLM with a draft model',
    { engine: 'vllm', speculative: { draft_model: 'org/small', tokens: 3 } },
    {},
    ['--speculative-config {"method":"draft_model","model":"org/small","num_speculative_tokens":3}'],
    [],
  ],
  [
    'llama-server on a GPU',
    { engine: 'llama-server', context_length: 4096, upstream_id: 'up' },
    {},
    [
      'llama-server -m /models/m --host 127.0.0.1 --port {port} --alias up -np 3 -c 12288',
      '-ngl 999',
      '--jinja -b 512',
    ],
    ['--embeddings', 'api-key'],
  ],
  ['llama-server on three GPUs', { engine: 'llama-server' }, { gpus: 3 }, ['-b 1536', '-ts 1,1,1'], []],
  [
    'llama-server gets the layers and the context that were booked',
    { engine: 'llama-server' },
    { plan },
    ['-np 3 -c 24576 -ngl 43'],
    ['999', '-ts'],
  ],
  [
    'what the options of llama-server say stays theirs',
    { engine: 'llama-server', args: ['--gpu-layers', '20', '-c', '4096', '-ts', '3,1'] },
    { plan, gpus: 2 },
    ['--gpu-layers 20 -c 4096 -ts 3,1'],
    ['-ngl', '-c 24576', '-ts 1,1'],
  ],
  [
    'llama-server with experts in main memory: the layers are not ours to choose',
    { engine: 'llama-server', args: ['--cpu-moe'] },
    { plan },
    ['-ngl 999', '-c 24576'],
    [],
  ],
  [
    'llama-server for embeddings computes a text of the booked length in one batch',
    { engine: 'llama-server', tasks: ['std/embeddings'] },
    { plan },
    ['-c 6144', '--embeddings -ub 2048 -b 2048'],
    [],
  ],
  [
    'llama-server on the CPU: prompts in short batches',
    { engine: 'llama-server' },
    { gpus: 0 },
    ['-ngl 0', '-t 2 -tb 2', '-b 64'],
    ['-c '],
  ],
  ['llama-server with images', { engine: 'llama-server', args: ['--mmproj', '/p'] }, { gpus: 0 }, ['-b 512'], []],
  [
    'llama-server with a configured batch',
    { engine: 'llama-server', args: ['--ubatch-size=2048'] },
    { gpus: 0 },
    ['--ubatch-size=2048'],
    ['-b '],
  ],
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
      'vllm serve /models/m --host 127.0.0.1 --port {port} --served-model-name org/m --tensor-parallel-size 2 --gpu-memory-utilization 0.456 --max-num-seqs 3 --max-model-len 8192',
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
  [
    'vLLM that can be parked listens on a socket, where no other program reaches the routes that park it',
    { engine: 'vllm' },
    { parking: 1 },
    ['vllm serve /models/m --uds {socket} --enable-sleep-mode --served-model-name org/m'],
    ['--port', '--host'],
  ],
  ['vLLM never gets all memory', { engine: 'vllm' }, { memoryShare: 1 }, ['--gpu-memory-utilization 0.95'], []],
  [
    'vLLM gets the context that fits',
    { engine: 'vllm' },
    { plan: { paged: { maxLength: 20_480, runtimeBytes: 0 } } },
    ['--max-model-len 20480'],
    [],
  ],
  [
    'what the options of vLLM say stays theirs',
    { engine: 'vllm', context_length: 4096, args: ['--gpu-memory-utilization', '0.9', '--max-model-len=8192'] },
    {},
    ['--gpu-memory-utilization 0.9 --max-model-len=8192'],
    ['0.5', '4096'],
  ],
  [
    'SGLang takes weights and cache from its share, and the rest from what is left of it',
    { engine: 'sglang' },
    { bytes: 20 * 2 ** 30, plan: { paged: { maxLength: 20_480, runtimeBytes: 2 * 2 ** 30 } } },
    ['--mem-fraction-static 0.45', '--context-length 20480'],
    [],
  ],
  [
    'vLLM on two nodes: layers among the nodes, each layer among the GPUs of one',
    { engine: 'vllm', devices: 4, nodes: 2 },
    { gpus: 8 },
    [
      '--tensor-parallel-size 4 --pipeline-parallel-size 2 --nnodes {nodes} --node-rank {node_rank} --master-addr {first_node} --master-port {first_node_port}',
    ],
    ['--headless'],
  ],
  [
    'vLLM on two nodes as its plan says',
    { engine: 'vllm', devices: 6, nodes: 2 },
    { gpus: 12, plan: { paged: { runtimeBytes: 1, parallel: { tensor: 2, pipeline: 6 } } } },
    ['--tensor-parallel-size 2 --pipeline-parallel-size 6 --nnodes'],
    [],
  ],
  [
    'vLLM on two nodes as its arguments say',
    { engine: 'vllm', devices: 4, nodes: 2, args: ['-tp=8'] },
    { gpus: 8 },
    ['--nnodes {nodes}', '-tp=8'],
    ['parallel-size'],
  ],
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
    'SGLang that can be parked keeps its weights meanwhile',
    { engine: 'sglang' },
    { parking: 1 },
    ['--tp-size 1 --enable-memory-saver --enable-weights-cpu-backup --mem-fraction-static'],
    [],
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
    ['infinity_emb v2 --model-id /models/m --served-model-name org/m', '--url-prefix /v1 --engine torch --device cpu'],
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
  ['infer starts nothing', { engine: 'infer', url: 'http://h:1' }, {}, [''], ['h']],
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
