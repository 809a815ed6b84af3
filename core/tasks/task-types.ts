import { z } from 'zod'
import { ChatRequest, ChatResponse } from '../schemas/chat.ts'
import { CompletionRequest, CompletionResponse } from '../schemas/completion.ts'
import { isGeneration, type Task, tasks } from '../schemas/task.ts'
import {
  EmbeddingsRequest,
  EmbeddingsResponse,
  RerankRequest,
  RerankResponse,
  ScoreRequest,
  ScoreResponse,
} from '../schemas/vectors.ts'
import { MadeFile } from './generation/made-file.ts'
import { generationRequests } from './generation/request.ts'
import { ImagesResponse, imageRequests } from './image/image-request.ts'
import { SpeechAnswer, SpeechRequest } from './speech/speech-request.ts'
import { Transcription, TranscriptionRequest, TranslationRequest } from './transcription/transcription-request.ts'

/** What a task takes and what it gives, as schemas: for checks, for the reference and for the types in workflows. */
export interface TaskType {
  request: z.ZodType
  result: z.ZodType
  category: 'text' | 'image' | 'video' | 'audio'
}

const made = {
  width: z.int(),
  height: z.int(),
  duration_seconds: z.number().optional(),
  seed_used: z.int(),
  seed: z.int(),
  prompt: z.string(),
  timings: z.object({ inference: z.number() }),
}
const Images = z.object({ images: z.array(MadeFile), ...made })
const Video = z.object({
  video: MadeFile,
  thumbnail_url: z.string().optional(),
  num_frames: z.int(),
  fps: z.number(),
  ...made,
})

const pictures = ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting']
const standard: Partial<Record<Task, [z.ZodType, z.ZodType, TaskType['category']?]>> = {
  'std/chat-completion': [ChatRequest, ChatResponse],
  'std/completion': [CompletionRequest, CompletionResponse],
  'std/embeddings': [EmbeddingsRequest, EmbeddingsResponse],
  'std/rerank': [RerankRequest, RerankResponse],
  'std/score': [ScoreRequest, ScoreResponse],
  'std/audio-speech': [SpeechRequest, SpeechAnswer, 'audio'],
  'std/audio-transcription': [TranscriptionRequest, Transcription, 'audio'],
  'std/audio-translation': [TranslationRequest, Transcription, 'audio'],
  'std/image-generation': [imageRequests['std/image-generation'], ImagesResponse, 'image'],
  'std/image-edit': [imageRequests['std/image-edit'], ImagesResponse, 'image'],
}

function typeOf(task: Task): TaskType {
  if (!isGeneration(task)) {
    const [request, result, category = 'text'] = standard[task]!
    return { request, result, category }
  }
  const isPicture = pictures.includes(task)
  return {
    request: generationRequests[task],
    result: isPicture ? Images : Video,
    category: isPicture ? 'image' : 'video',
  }
}

/** The type of every task. */
export const taskTypes: ReadonlyMap<Task, TaskType> = new Map(tasks.map(task => [task, typeOf(task)]))

/** Names that are understood for a task besides its own. */
export const taskAliases: Readonly<Record<string, Task>> = {
  'std/chat': 'std/chat-completion',
  'std/chat-completions': 'std/chat-completion',
  'std/completions': 'std/completion',
  'std/embedding': 'std/embeddings',
  'std/reranking': 'std/rerank',
  'std/speech': 'std/audio-speech',
  'std/transcription': 'std/audio-transcription',
  'std/translation': 'std/audio-translation',
  'std/image-generations': 'std/image-generation',
  'std/images-generations': 'std/image-generation',
  'std/image-edits': 'std/image-edit',
  'std/images-edits': 'std/image-edit',
}

/** The task of that name. */
export const taskNamed = (name: string): Task | undefined =>
  taskTypes.has(name as Task) ? (name as Task) : Object.hasOwn(taskAliases, name) ? taskAliases[name] : undefined
