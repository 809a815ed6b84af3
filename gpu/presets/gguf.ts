import { cacheDirectory } from '../../core/extraction.ts'
import { translatedCode } from '../engines/gguf/backend-search.ts'
import { maxParallel } from '../engines/gguf/options.ts'
import { usableAdapters } from '../estimate/adapters.ts'
import { overheadOf } from '../estimate/estimate.ts'
import { ggufSettings } from './engine-settings.ts'
import { llamaFeatures } from './llama-server.ts'
import { definePreset, guessFault, needsSource, option, ownCommand, ownEngine, upstreamId } from './preset.ts'
import { routesOf } from './routes.ts'

/**
 * The built-in llama.cpp engine: this executable with other arguments. Its backends for GPUs take half a gigabyte and
 * are not included; where none is installed and works, it runs on the processor.
 */
export const gguf = definePreset({
  name: 'gguf',
  takesThreads: true,
  needsBackend: true,
  settings: ggufSettings,
  configurationFault(model) {
    const tooMany = (model.concurrency ?? 1) > maxParallel
    if (model.speculative?.draft_model)
      return "it guesses from the text only. Remove 'draft_model', or use the engine llama-server."
    return (
      guessFault(model) ??
      needsSource(model, 'the GGUF file') ??
      (tooMany ? `its 'concurrency' may be ${maxParallel} at most.` : undefined)
    )
  },
  slots: 4,
  ...ownEngine,
  sandbox: {
    level: 'strict',
    isOwn: true,
    reads: (_model, { backend }) => [backend?.folder, backend?.linked].filter(path => path !== undefined),
  },
  command(model, { slots, threads, gpus, backend, bytes, plan, conversations }) {
    const own = overheadOf({ kind: gpus > 0 ? 'gpu' : 'cpu', backend: backend?.gpu }) * Math.max(1, gpus)
    const planned = plan?.layout?.need[gpus > 0 ? 'gpu' : 'cpu']
    return ownCommand(
      ['gguf', '--model', model.source ?? '', '--id', upstreamId(model)],
      model.tasks.flatMap(task => ['--task', task]),
      ['--socket', '{socket}', '--threads', String(model.threads ?? threads), '--parallel', String(slots)],
      gpus > 0 && backend ? ['--gpu', backend.gpu, '--backends', backend.folder] : ['--gpu', 'off'],
      // The engine computes its layout with the function that made the booking, so it needs the same amount of
      // memory: what the plan takes, not what earlier engines took beyond it.
      option('--memory', planned ?? model.memory ?? Math.max(0, Math.floor(bytes) - own)),
      option('--context', model.context_length),
      option('--gpu-layers', model.gpu_layers),
      option('--flash-attention', model.flash_attention),
      option('--kv-type', model.kv_type),
      option('--batch', model.batch_size),
      option('--guess', model.speculative?.tokens),
      model.mmap === false ? ['--no-mmap'] : [],
      model.mlock ? ['--mlock'] : [],
      option('--conversations', conversations),
      usableAdapters(plan?.adapters).flatMap(({ id, scale, source }) => ['--adapter', `${id}=${scale}=${source}`]),
      model.args,
    )
  },
  adapters: { reads: 'gguf', scales: true },
  env: (model, key) => ({
    ...ownEngine.env(model, key),
    ...translatedCode(cacheDirectory()),
    GGML_NO_BACKTRACE: '1',
  }),
  abilities: () => ({
    routes: routesOf({ openaiText: 'all' }),
    features: [...llamaFeatures, 'n', 'repetition_penalty', 'echo'],
    base64: true,
    streamUsage: 'progress',
    namedTool: true,
    promptLists: true,
    savesConversations: true,
  }),
})
