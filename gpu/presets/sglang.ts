import type { Model } from '../../core/models/model.ts'
import { isFor } from '../../core/schemas/task.ts'
import type { MemoryPlan } from '../estimate/estimate.ts'
import {
  definePreset,
  generates,
  type LaunchFacts,
  noKey,
  onLoopback,
  scoreByRerank,
  unlessGiven,
  upstreamId,
} from './preset.ts'
import { inOwnEnvironment, programOfVersion } from './released-program.ts'
import { routesOf } from './routes.ts'
import { leastShare, memoryOption, pipelineOption, textFeatures } from './vllm.ts'

const pools = ({ tasks }: Model): boolean => isFor(tasks, 'embed', 'rerank')

/**
 * Its share of what is free on the fullest card is that of weights and cache; activations and CUDA graphs take the rest of
 * what was booked.
 */
function staticShare({ bytes, gpus, memoryShare, freeShare, plan }: LaunchFacts): string {
  const runtime = plan?.paged?.runtimeBytes ?? 0
  const share = gpus > 0 ? freeShare : memoryShare
  return memoryOption(share * (bytes > runtime ? 1 - runtime / bytes : 1), gpus, 0.9)
}

/** What its memory saver gives back. Not the CUDA graphs: with several cards their replay may hang after that. */
const savedTags = ['kv_cache', 'weights']
/** Seconds for which parking waits for a request that was aborted and still runs. */
const idleSeconds = 20

/** A colon in its name would divide it from that of an adapter. */
const servedName = (model: Model): string => upstreamId(model).replaceAll(':', '-')

/** Adapters are loaded by requests; these reserve the memory for them, and for requests without one. */
function adapterOptions(model: Model, plan: MemoryPlan | undefined): string[] {
  const { adapters } = plan ?? {}
  if (!adapters || model.args.includes('--enable-lora')) return []
  return [
    '--enable-lora',
    ...unlessGiven(model, '--max-loras-per-batch', adapters.atOnce + 1),
    ...unlessGiven(model, '--max-lora-rank', adapters.rank),
    ...unlessGiven(model, '--lora-target-modules', 'all'),
  ]
}

/**
 * SGLang. It is parked by its memory saver, whose routes need an idle engine: a request that still runs ends the process, so
 * the cache is emptied first, which waits for it; so does waking what is not parked. `/health` answers 503 until it has warmed up; `/v1/models` answers too early. Rerankers answer logits. It takes
 * its key only as an argument, so it has none and listens on this machine only. Tried with 0.5.23 on the processor: chat
 * and completion; embeddings, reranking, transcription and parking by its sources.
 */
export const sglang = definePreset({
  name: 'sglang',
  runsOn: 'gpu',
  leastShare,
  installation: { program: 'sglang', advice: 'Install it with: infer engine setup sglang' },
  ...inOwnEnvironment('sglang'),
  image: ({ engine_version: version }) => ({
    name: `lmsysorg/sglang:${version === undefined ? 'latest' : `v${version}`}`,
    program: 'sglang',
  }),
  configurationFault(model) {
    if (generates(model) && pools(model))
      return 'one process does either chat and completion, or embeddings and reranking. Write two models.'
    // Read into the running engine, quantized weights may be packed a second time.
    return model.parking === 2 ? "it keeps its weights while it is parked. Write 'parking: 1'." : undefined
  },
  settings: ['engine_version', 'parking'],
  slots: 128,
  parking: {
    1: {
      park: [
        { path: `/flush_cache?timeout=${idleSeconds}` },
        { path: '/release_memory_occupation', body: { tags: savedTags } },
      ],
      wake: [{ path: '/resume_memory_occupation', body: { tags: savedTags } }],
      hostFactor: 9 / 8,
    },
  },
  command: (model, facts) => [
    [
      programOfVersion('sglang', model.engine_version),
      'serve',
      '--model-path',
      model.source ?? model.id,
      ...onLoopback,
    ],
    [
      '--served-model-name',
      servedName(model),
      '--tp-size',
      String(facts.plan?.paged?.parallel?.tensor ?? Math.max(1, facts.gpus)),
    ],
    pipelineOption('--pp-size', facts.plan),
    facts.gpus > 0 ? [] : ['--device', 'cpu'],
    facts.parking ? ['--enable-memory-saver', '--enable-weights-cpu-backup'] : [],
    unlessGiven(model, '--mem-fraction-static', staticShare(facts)),
    ['--max-running-requests', String(facts.slots)],
    unlessGiven(model, '--context-length', model.context_length ?? facts.plan?.paged?.maxLength),
    pools(model) ? '--is-embedding' : [],
    adapterOptions(model, facts.plan),
    model.args,
  ],
  upstreamId: servedName,
  adapters: {
    reads: 'folder',
    scales: false,
    routes: { load: '/load_lora_adapter', unload: '/unload_lora_adapter' },
  },
  // It refuses cards of which one has less free than the others: infer has booked what it takes of each.
  env: () => ({ DO_NOT_TRACK: '1', SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK: '0' }),
  key: noKey,
  abilities: model => ({
    routes: routesOf({ openaiText: ['chat', 'complete', 'embed', 'rerank'], openaiAudio: ['transcribe'] }),
    features: textFeatures,
    rerankScores: 'logit',
    // Its `/v1/score` is for probabilities of tokens, so pairs are scored by reranking or by embeddings.
    scoreBy: scoreByRerank(model),
    streamUsage: 'end',
    namedTool: true,
    promptLists: true,
    adapterPrefix: `${servedName(model)}:`,
  }),
})
