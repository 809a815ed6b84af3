import { assetPath } from '../assets.ts'
import { generationTasks, tasksBy } from '../schemas/task.ts'
import { Model } from './model.ts'
import { namesOf } from './model-names.ts'

/** The models that a configuration offers: its own, and the toys where it lists none or asks for them. */
export function offeredModels(
  { models, toys }: { models: readonly Model[]; toys?: boolean | undefined },
  defaults: () => Model[] = defaultModels,
): readonly Model[] {
  if (!(toys ?? models.length === 0)) return models
  const taken = new Set(models.flatMap(model => [model.slug, ...namesOf(model)]))
  return [...models, ...defaults().filter(({ id, slug }) => !taken.has(id) && (slug === undefined || !taken.has(slug)))]
}

/**
 * Returns the models that ship inside the executable, which `infer serve` offers when no model is configured. Three are
 * real llama.cpp models of a few hundred kilobytes with made-up weights. The others need no weights: one draws images and
 * videos, one turns text into tones, and one turns these tones into text. They are for a first answer, for clients and
 * for tests; their descriptions say so.
 */
export const defaultModels = (): Model[] =>
  [
    {
      id: 'infer/tiny-chat',
      source: assetPath('models/tiny-chat.gguf'),
      tasks: tasksBy('chat', 'complete'),
      description:
        'A hand-made toy that always says the same sentence. It shows that everything works; it knows nothing.',
      context_length: 2048,
      concurrency: 8,
    },
    {
      id: 'infer/tiny-embed',
      source: assetPath('models/tiny-embed.gguf'),
      tasks: tasksBy('embed'),
      description: 'A hand-made toy: texts that share words get similar vectors; it knows no meaning.',
      context_length: 512,
      concurrency: 4,
    },
    {
      id: 'infer/tiny-rerank',
      source: assetPath('models/tiny-rerank.gguf'),
      tasks: tasksBy('rerank'),
      description: 'A hand-made toy: documents that share words with the query come first; it knows no meaning.',
      context_length: 512,
      concurrency: 4,
    },
    {
      id: 'infer/demo',
      engine: 'demo',
      slug: 'demo',
      tasks: [...generationTasks],
      description:
        'A toy that writes the prompt over a pattern of the seed, as images and videos of the requested size and length. It is not a model.',
      memory: '768MiB',
      concurrency: 2,
    },
    {
      id: 'infer/tiny-speech',
      engine: 'demo',
      tasks: tasksBy('synthesize'),
      description:
        'A toy that turns text into tones, two for each half of a byte. It is not a voice: only a program understands it.',
      memory: '128MiB',
      concurrency: 4,
    },
    {
      id: 'infer/tiny-transcription',
      engine: 'demo',
      tasks: tasksBy('transcribe'),
      description: 'A toy that transcribes only the tones of infer/tiny-speech. It recognizes no other audio.',
      memory: '512MiB',
      concurrency: 2,
    },
  ].map(entry => Model.parse({ engine: 'gguf', devices: 'cpu', memory: '64MiB', ...entry }))
