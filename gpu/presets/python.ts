import type { Feature, Model } from '../../core/models/model.ts'
import { isFor, type Task } from '../../core/schemas/task.ts'
import { pythonSettings } from './engine-settings.ts'
import { definePreset, ffmpegFor, generates, type NeededProgram, needsSource, option, upstreamId } from './preset.ts'
import { inVersion, neededVersion, programOfVersion } from './released-program.ts'
import { routesOf } from './routes.ts'

const program = 'infer-worker'

/**
 * The worker in gpu/worker, which runs models of Python libraries: diffusers, transformers, faster-whisper, Piper. It is
 * a program of an environment that `infer engine setup` makes. One process runs one model.
 */
export const python = definePreset({
  name: 'python',
  takesThreads: true,
  installation: tasks => ({
    program,
    environments: environmentsFor(tasks),
    advice: `Install it with: ${setUp(tasks)}`,
  }),
  environments,
  programs: (model, task) => [neededWorker(model), ...ffmpegFor(task)],
  settings: ['threads', 'engine_version', ...pythonSettings],
  configurationFault(model) {
    const isRelative = !model.source?.startsWith('/')
    return (
      needsSource(model, 'the folder or file of the model') ??
      (isRelative ? "'source' must be an absolute path, because the engine downloads nothing." : undefined)
    )
  },
  slots: 1,
  channel: () => 'socket',
  sandbox: {
    level: 'strict',
    programs: ['ffmpeg'],
    // A voice of Piper is described by a file beside it.
    reads: ({ source = '', loras = [] }) => [
      ...(source.endsWith('.onnx') ? [`${source}.json`] : []),
      ...loras.map(lora => lora.split('=')[0]!),
    ],
  },
  command: (model, { threads, gpus, bytes }) => [
    [
      programOfVersion(program, model.engine_version),
      '--model',
      model.source ?? '',
      '--id',
      upstreamId(model),
      '--socket',
      '{socket}',
    ],
    model.tasks.flatMap(task => ['--task', task]),
    ['--threads', String(model.threads ?? threads), '--device', gpus > 0 ? 'cuda' : 'cpu'],
    option('--memory', gpus > 0 ? bytes : undefined),
    option('--dtype', model.dtype),
    option('--quantization', model.quantization),
    option('--offload', model.offload),
    (model.loras ?? []).flatMap(lora => ['--lora', lora.includes('=') ? lora : `${lora}=1`]),
    model.compile ? '--compile' : [],
    model.args,
  ],
  env: (_model, key) => ({
    INFER_ENGINE_KEY: key,
    TRANSFORMERS_OFFLINE: '1',
    DO_NOT_TRACK: '1',
    PYTHONUNBUFFERED: '1',
    // Its environment is read-only in a sandbox.
    PYTHONDONTWRITEBYTECODE: '1',
  }),
  reportsRunning: () => true,
  keepAliveMs: 110_000,
  abilities: model => ({
    routes: routesOf({ inferGeneration: 'all', openaiAudio: 'all', openaiText: 'all' }),
    base64: true,
    streamUsage: 'end',
    promptLists: true,
    speech: { formats: ['wav', 'pcm'] },
    features: featuresOf(model),
  }),
})

/** Whether a model with these tasks synthesizes or transcribes speech. */
const speaks = (tasks: readonly Task[]): boolean => isFor(tasks, 'synthesize', 'transcribe', 'translate')

function environments({ environment, tasks, engine_version }: Model): readonly string[] {
  return inVersion(environment === undefined ? environmentsFor(tasks) : [environment], engine_version)
}

function neededWorker(model: Model): NeededProgram {
  const { engine_version, environment = environmentsFor(model.tasks)[0]! } = model
  if (engine_version === undefined)
    return { name: program, environments: environments(model), install: setUp(model.tasks) }
  return { ...neededVersion(environment, program, engine_version), environments: environments(model) }
}

/** The environments that can run these tasks, the smaller one first. */
const environmentsFor = (tasks: readonly Task[]): readonly string[] =>
  speaks(tasks) ? ['speech', 'python'] : ['python']

const setUp = (tasks: readonly Task[]): string => `infer engine setup ${environmentsFor(tasks)[0]}`

function featuresOf(model: Model): Feature[] {
  if (speaks(model.tasks)) return ['segments', 'words', 'transcription_stream']
  return generates(model) ? ['images', 'top_k', 'min_p', 'repetition_penalty'] : []
}
