import { enabledAdapters } from '../../core/models/adapter.ts'
import type { Feature, Model } from '../../core/models/model.ts'
import { nodesOf } from '../../core/models/spanned-nodes.ts'
import { isFor } from '../../core/schemas/task.ts'
import type { MemoryPlan } from '../estimate/estimate.ts'
import { allFeatures, definePreset, generates, guessFault, onLoopback, unlessGiven, upstreamId } from './preset.ts'
import { inOwnEnvironment, programOfVersion } from './released-program.ts'
import { routesOf } from './routes.ts'

/** Of a card, so that rounding and the driver leave enough for an engine to start. */
export const leastShare = 0.1

/**
 * vLLM 0.26 and later. Its memory fraction is a share of the whole card, whatever others use there, and it does not start
 * when less is free, so it gets exactly the booked share; a build for the processor takes it of the main memory. Readiness is read from `/health`,
 * because other routes answer too early. Tried with 0.32.0 on the processor; parking by its sources (`sleep` of its
 * development mode), not on a GPU. Several nodes by its own launch with `--nnodes`, as its guide of
 * parallelism says: the others run with `--headless`. Not tried on GPUs.
 */
export const vllm = definePreset({
  name: 'vllm',
  runsOn: 'gpu',
  takesShare: true,
  leastShare,
  configurationFault: guessFault,
  installation: { program: 'vllm', advice: 'Install it with: infer engine setup vllm' },
  ...inOwnEnvironment('vllm'),
  image: ({ engine_version: version }) => ({
    name: `vllm/vllm-openai:${version === undefined ? 'latest' : `v${version}`}`,
    program: 'vllm',
  }),
  settings: ['engine_version', 'speculative', 'parking', 'nodes'],
  otherNodes: ['--headless'],
  slots: 256,
  // The routes that park it need no key and can do more, so no other program may reach them.
  channel: (_model, facts) => (facts?.parking ? 'socket' : 'port'),
  parking: {
    // Blocks of pinned memory are rounded up to powers of two, a third on average.
    1: { park: [{ path: '/sleep?level=1' }], wake: [{ path: '/wake_up' }], hostFactor: 4 / 3 },
    2: {
      park: [{ path: '/sleep?level=2' }],
      wake: [
        { path: '/wake_up?tags=weights' },
        { path: '/collective_rpc', body: { method: 'reload_weights' } },
        { path: '/wake_up?tags=kv_cache' },
      ],
    },
  },
  command: (model, { gpus, memoryShare, slots, plan, parking }) => [
    [programOfVersion('vllm', model.engine_version), 'serve', model.source ?? model.id],
    parking ? ['--uds', '{socket}', '--enable-sleep-mode'] : onLoopback,
    ['--served-model-name', upstreamId(model)],
    parallelOptions(model, gpus, plan),
    unlessGiven(model, '--gpu-memory-utilization', memoryOption(memoryShare, gpus, 0.95)),
    ['--max-num-seqs', String(slots)],
    unlessGiven(model, '--max-model-len', model.context_length ?? plan?.paged?.maxLength),
    guessOption(model),
    synthesizes(model) ? '--omni' : generates(model) || transcribes(model) ? [] : ['--runner', 'pooling'],
    adapterOptions(model, plan),
    model.args,
  ],
  env: (model, key, facts) => ({
    VLLM_API_KEY: key,
    VLLM_NO_USAGE_STATS: '1',
    DO_NOT_TRACK: '1',
    ...(enabledAdapters(model).length > 0 && { VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True' }),
    ...(facts?.parking && { VLLM_SERVER_DEV_MODE: '1' }),
  }),
  adapters: {
    reads: 'folder',
    scales: false,
    routes: { load: '/v1/load_lora_adapter', unload: '/v1/unload_lora_adapter' },
  },
  abilities: () => ({
    routes: routesOf({ openaiText: 'all', classification: 'all', openaiAudio: 'all' }),
    features: textFeatures,
    dimensions: true,
    base64: true,
    streamUsage: 'continuous',
    namedTool: true,
    promptLists: true,
    speech: { reference: { audio: 'ref_audio', text: 'ref_text' } },
  }),
})

const parallelNames = ['--tensor-parallel-size', '-tp', '--pipeline-parallel-size', '-pp']

/** How the parts on several nodes find each other; the launcher replaces the words in braces. */
const meeting =
  '--nnodes {nodes} --node-rank {node_rank} --master-addr {first_node} --master-port {first_node_port}'.split(' ')

/** How it is divided among its cards, and how its parts on several nodes find each other. */
function parallelOptions(model: Model, gpus: number, plan: MemoryPlan | undefined): string[] {
  const nodes = nodesOf(model)
  const { tensor = Math.max(1, gpus / nodes) } = plan?.paged?.parallel ?? {}
  if (nodes === 1)
    return ['--tensor-parallel-size', String(tensor), ...pipelineOption('--pipeline-parallel-size', plan)]
  const { pipeline = nodes } = plan?.paged?.parallel ?? {}
  const isGiven = model.args.some(arg => parallelNames.includes(arg.split('=')[0]!))
  return [
    ...(isGiven ? [] : ['--tensor-parallel-size', String(tensor), '--pipeline-parallel-size', String(pipeline)]),
    ...meeting,
  ]
}

/** The option for guessed tokens; n-grams of up to four tokens. */
function guessOption(model: Model): string[] {
  if (!model.speculative) return []
  const { draft_model, tokens } = model.speculative
  const method =
    draft_model === undefined
      ? { method: 'ngram', prompt_lookup_max: 4 }
      : { method: 'draft_model', model: draft_model }
  return unlessGiven(model, '--speculative-config', JSON.stringify({ ...method, num_speculative_tokens: tokens }))
}

/** Adapters are loaded by requests; these reserve the memory for them. */
function adapterOptions(model: Model, plan: MemoryPlan | undefined): string[] {
  const { adapters } = plan ?? {}
  if (!adapters || model.args.includes('--enable-lora')) return []
  return [
    '--enable-lora',
    ...unlessGiven(model, '--max-loras', adapters.atOnce),
    ...unlessGiven(model, '--max-cpu-loras', Math.max(adapters.atOnce, Math.min(32, adapters.list.length))),
    ...unlessGiven(model, '--max-lora-rank', adapters.rank),
  ]
}

/** An option for the groups of layers, if there are several. */
export const pipelineOption = (name: string, plan: MemoryPlan | undefined): string[] => {
  const { pipeline = 1 } = plan?.paged?.parallel ?? {}
  return pipeline > 1 ? [name, String(pipeline)] : []
}

/** Speech is synthesized by vLLM-Omni, which needs the option `--omni`. */
const synthesizes = ({ tasks }: Model): boolean => isFor(tasks, 'synthesize')

/** Transcription models such as Whisper generate text like chat models, so they need no pooling runner. */
const transcribes = ({ tasks }: Model): boolean => isFor(tasks, 'transcribe', 'translate')

const unsupported: ReadonlySet<Feature> = new Set(['files', 'suffix', 'best_of', 'words', 'speakers'])
/** vLLM and SGLang refuse a suffix, do not support `best_of`, and have timestamps for segments only. */
export const textFeatures = allFeatures.filter(feature => !unsupported.has(feature))

/**
 * The booked share of the memory as an option of vLLM and SGLang, whose names speak of GPUs, also on the processor. Of a
 * card at least 0.1, and at most `most`, because the driver needs some. Rounded down to a ten-thousandth, 8 MB of 80 GB, so
 * that the shares of two engines add up to less than 1.
 */
export function memoryOption(share: number, gpus: number, most: number): string {
  const [least, limit] = gpus > 0 ? [leastShare, most] : [0.0001, 0.95]
  // The product of a number of few digits may be a little too small.
  return String(Math.floor(Math.min(limit, Math.max(least, share)) * 10_000 + 1e-6) / 10_000)
}
