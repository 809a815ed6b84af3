import type { Feature, Model } from '../../core/models/model.ts'
import { isFor } from '../../core/schemas/task.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openaiText } from '../../core/tasks/protocols/openai-text.ts'
import { allFeatures, generates, type Preset, traitsFor } from './preset.ts'
import { engineRefusal } from './refusal.ts'
import { routesOf } from './routes.ts'
import { shareOfMainMemory } from './share-of-main-memory.ts'

/** Its `/v1/score` is for probabilities of tokens, so pairs are scored by reranking or by embeddings. */
const unsupported: ReadonlySet<Feature> = new Set(['files', 'suffix', 'best_of', 'words', 'speakers'])

/** At most 0.9, because the rest holds activations and CUDA graphs. Rounded down so that shares fit beside each other. */
const formatShare = (share: number): string => String(Math.floor(Math.min(0.9, Math.max(0.1, share)) * 100) / 100)

const pools = ({ tasks }: Model): boolean => isFor(tasks, 'embed', 'rerank')

/**
 * SGLang. `/health` answers 503 until it has warmed up; `/v1/models` answers too early. Rerankers answer logits. It takes
 * its key only as an argument, so it has none and listens on this machine only. Tried with 0.5.23 on the processor: chat
 * and completion; embeddings, reranking and transcription by its sources.
 */
export const sglang: Preset = {
  name: 'sglang',
  runsOn: 'gpu',
  installation: () => ({ program: 'sglang', advice: "Install it with: pip install 'sglang[all]'" }),
  configurationFault: model =>
    generates(model) && pools(model)
      ? 'one process does either chat and completion, or embeddings and reranking. Write two models.'
      : undefined,
  slots: 128,
  channel: () => 'port',
  sandbox: { level: 'files' },
  command: (model, { gpus, memoryShare, slots }) =>
    [
      ['sglang', 'serve', '--model-path', model.source ?? model.id, '--host', '127.0.0.1', '--port', '{port}'],
      ['--served-model-name', model.upstream_id ?? model.id, '--tp-size', String(Math.max(1, gpus))],
      gpus > 0 ? [] : ['--device', 'cpu'],
      ['--mem-fraction-static', gpus > 0 ? formatShare(memoryShare) : shareOfMainMemory(memoryShare)],
      ['--max-running-requests', String(slots)],
      model.context_length ? ['--context-length', String(model.context_length)] : [],
      pools(model) ? ['--is-embedding'] : [],
      model.args,
    ].flat(),
  env: () => ({ DO_NOT_TRACK: '1' }),
  key: () => undefined,
  address: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 4_000,
  traits: model =>
    traitsFor(model, {
      routes: {
        ...routesOf([openaiText], ['chat', 'complete', 'embed', 'rerank']),
        ...routesOf([openaiAudio], ['transcribe']),
      },
      features: allFeatures.filter(feature => !unsupported.has(feature)),
      rerankScores: 'logit',
      scoreBy: isFor(model.tasks, 'rerank') ? 'rerank' : 'embeddings',
      dimensions: false,
      base64: false,
      streamUsage: 'end',
      namedTool: true,
      promptLists: true,
    }),
  failureOf: (status, body) => engineRefusal(status, body),
}
