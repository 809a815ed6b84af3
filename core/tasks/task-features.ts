import type { Feature } from '../models/model.ts'
import type { Task } from '../schemas/task.ts'

const sampling: readonly Feature[] = [
  'logprobs',
  'n',
  'logit_bias',
  'penalties',
  'top_k',
  'min_p',
  'repetition_penalty',
]
const transcription: readonly Feature[] = ['segments', 'words', 'speakers', 'logprobs', 'transcription_stream']

/** The features that a request of each task can use; none for the tasks that are missing. */
const taskFeatures: Partial<Record<Task, readonly Feature[]>> = {
  'std/chat-completion': [
    ...sampling,
    ...(['tools', 'json_object', 'json_schema', 'images', 'audio', 'files', 'chat_template_kwargs'] as const),
  ],
  'std/completion': [...sampling, 'echo', 'suffix', 'best_of'],
  'std/audio-transcription': transcription,
  'std/audio-translation': transcription,
  'std/audio-speech': ['voice_cloning'],
  'std/image-generation': ['transparent_background'],
  'std/image-edit': ['variations', 'transparent_background'],
}

/** The features of an engine that count for each task of a model, in the order in which the engine has them. */
export const featuresByTask = (
  tasks: readonly Task[],
  features: ReadonlySet<Feature>,
): Partial<Record<Task, Feature[]>> =>
  Object.fromEntries(tasks.map(task => [task, [...features].filter(one => taskFeatures[task]?.includes(one))]))
