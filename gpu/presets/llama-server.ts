import type { Feature, Model } from '../../core/models/model.ts'
import { isFor } from '../../core/schemas/task.ts'
import { usableAdapters } from '../estimate/adapters.ts'
import { llamaOptions } from '../estimate/llama-options.ts'
import { toolConverter } from './llama-tools.ts'
import {
  definePreset,
  generates,
  guessFault,
  type LaunchFacts,
  needsSource,
  onLoopback,
  option,
  type Quirk,
  scoreByRerank,
  upstreamId,
} from './preset.ts'
import { released, releasedInstallation, releasedProgram } from './released-program.ts'
import { routesOf } from './routes.ts'

/** The server answers these caller mistakes with 500 and 501. Source: tried with the server of llama.cpp v0.5.0. */
const quirks: Quirk[] = [
  { status: 500, pattern: /parse error|parse_error|json\.exception|invalid json/i, code: 'invalid_json' },
  { status: 500, pattern: /(image|audio|video) input is not supported/i, code: 'unsupported_parameter' },
  { status: 500, pattern: /increase the physical batch size|input is too large/i, code: 'context_length_exceeded' },
  { status: 501, pattern: /not_supported|not support/i, code: 'unsupported_task' },
]

/** Those of llama.cpp. The server knows `repetition_penalty` by another name. */
export const llamaFeatures: readonly Feature[] = [
  'tools',
  'json_object',
  'json_schema',
  'logprobs',
  'logit_bias',
  'penalties',
  'top_k',
  'min_p',
  'chat_template_kwargs',
]

const sizesBatches = /^(-b|-ub|--batch-size|--ubatch-size)(=|$)/

/**
 * A cancelled prompt is computed to the end of its batch, and all slots wait for it: the server's own 2,048 tokens
 * take 14 s at 146 tokens a second, on one core with a model of 135 million parameters. A card computes physical
 * batches of 512 tokens, several at a time if there are several cards. Images need 512.
 */
function batchOptions(model: Model, gpus: number): string[] {
  if (model.args.some(arg => sizesBatches.test(arg))) return []
  const tokens = gpus > 0 ? Math.min(512 * gpus, 2048) : model.args.includes('--mmproj') ? 512 : 64
  return ['-b', String(tokens)]
}

/** Options for the task family; a llama-server process serves only one. */
function taskOptions(model: Model, { gpus, plan }: LaunchFacts): string[] {
  if (generates(model)) return ['--jinja', ...batchOptions(model, gpus)]
  const tokens = model.context_length ?? plan?.layout?.encoderContext
  const batch =
    tokens && !model.args.some(arg => sizesBatches.test(arg)) ? ['-ub', String(tokens), '-b', String(tokens)] : []
  return [isFor(model.tasks, 'rerank') ? '--reranking' : '--embeddings', ...batch]
}

/**
 * Layers and context as they were booked. What the model's own options name is left to them, and so are the layers if
 * those keep single tensors in main memory. Without a plan all layers are put on the cards.
 */
function layoutOptions(model: Model, { slots, gpus, plan, layers: divided }: LaunchFacts): string[] {
  const given = llamaOptions(model)
  const layout = given.keepsTensors ? undefined : plan?.layout
  const chosen = generates(model) ? plan?.layout?.context : plan?.layout?.encoderContext
  const context = chosen ?? model.context_length
  const layers = gpus > 0 ? String(layout?.gpuLayers ?? 999) : '0'
  return [
    // -c is the context of all slots together.
    ...(context === undefined || given.context !== undefined
      ? []
      : ['-c', String(context * (given.parallel || slots))]),
    ...(given.gpuLayers === undefined ? ['-ngl', layers] : []),
    // By layers as they were booked; else the booking is the same on each card.
    ...(gpus > 1 && divided ? ['-sm', 'layer'] : []),
    ...(gpus > 1 && given.tensorSplit === undefined ? ['-ts', (divided ?? Array(gpus).fill(1)).join(',')] : []),
  ]
}

/**
 * Options for guessed tokens. The draft model is on the cards if the model is. Source: `--help` of a build of August 2026;
 * older builds have other names.
 */
function guessOptions({ speculative }: Model, { gpus }: LaunchFacts): string[] {
  if (!speculative) return []
  const { draft_model, tokens } = speculative
  if (draft_model === undefined)
    return [
      '--spec-type',
      'ngram-simple',
      '--spec-ngram-simple-size-n',
      '3',
      '--spec-ngram-simple-size-m',
      String(tokens),
    ]
  const layers = gpus > 0 ? 'all' : '0'
  return ['--spec-type', 'draft-simple', '-md', draft_model, '--spec-draft-n-max', String(tokens), '-ngld', layers]
}

/** Whether another model guesses, or may by the model's own options: its memory is not saved with that of the model. */
const guessesByModel = ({ speculative, args }: Model): boolean =>
  speculative?.draft_model !== undefined ||
  args.some(arg => /^(-md|-hfr?d|--model-draft|--hf-repo-draft|--spec-(draft-model|draft-hf|type))(=|$)/.test(arg))

/** It takes a comma for the end of a path. */
function commaFault({ adapters = [] }: Model): string | undefined {
  const wrong = adapters.find(({ source }) => source.includes(','))
  return wrong && `the path of the adapter '${wrong.id}' has a comma. Rename the file.`
}

/** Requests choose an adapter by its place in this list. */
function adapterOptions({ plan }: LaunchFacts): string[] {
  const adapters = usableAdapters(plan?.adapters)
  if (adapters.length === 0) return []
  return [...adapters.flatMap(({ source }) => ['--lora', source]), '--lora-init-without-apply']
}

/** The server of llama.cpp, of its releases or installed by the operator: images, tool calls, JSON schema grammars. */
export const llamaServer = definePreset({
  name: 'llama-server',
  usesVulkan: true,
  takesThreads: true,
  ...released,
  image: ({ engine_version: version }) => ({
    name: `ghcr.io/ggml-org/llama.cpp:server-cuda${version === undefined ? '' : `-${version}`}`,
    program: '/app/llama-server',
  }),
  installation: releasedInstallation('llama-server'),
  settings: [...released.settings, 'speculative'],
  configurationFault: model => guessFault(model) ?? needsSource(model, 'the GGUF file') ?? commaFault(model),
  slots: 4,
  command: (model, facts) => [
    [releasedProgram(model), '-m', model.source ?? '', ...onLoopback],
    ['--alias', upstreamId(model), '-np', String(facts.slots)],
    layoutOptions(model, facts),
    ['-t', String(facts.threads), '-tb', String(facts.threads)],
    ['--metrics', '--slots', '--offline', '--no-ui'],
    taskOptions(model, facts),
    guessOptions(model, facts),
    option('--slot-save-path', facts.conversations),
    adapterOptions(facts),
    model.args,
  ],
  env: (_model, key) => ({ LLAMA_API_KEY: key, GOMP_SPINCOUNT: '0' }),
  runningPath: model => (generates(model) ? '/slots' : null),
  // It looks for clients that have left only after a second without a result of any request, of /slots too.
  runningPollMs: 1_250,
  descriptionPath: model => (generates(model) ? '/props' : null),
  converter: toolConverter,
  savesSlots: true,
  adapters: {
    reads: 'gguf',
    scales: true,
    // Adapters that a request does not name have no effect, but in a request that names none all have.
    members: (at = 0, scale) => `"lora":[{"id":${at},"scale":${scale}}]`,
  },
  abilities: model => ({
    routes: routesOf({ openaiText: ['chat', 'complete', 'embed', 'rerank'], openaiAudio: ['transcribe'] }),
    // Images and audio need `--mmproj`.
    features: model.args.includes('--mmproj') ? [...llamaFeatures, 'images', 'audio'] : llamaFeatures,
    rerankScores: 'logit',
    scoreBy: scoreByRerank(model),
    base64: true,
    streamUsage: 'progress',
    jsonObject: 'schema',
    // A folder of the operator's own is not that of infer.
    savesConversations:
      !guessesByModel(model) && !model.args.some(arg => /^--(slot-save-path|no-slots)(=|$)/.test(arg)),
  }),
  quirks,
})
