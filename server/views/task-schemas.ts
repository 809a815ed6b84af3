import { z } from 'zod'
import type { Task } from '../../core/schemas/task.ts'
import { taskRecord } from '../../core/tasks/registry.ts'
import { emitted } from './json-schema.ts'

/** A JSON Schema of an object. */
export interface ObjectSchema {
  $schema?: string
  type?: string
  properties?: Record<string, object>
  required?: string[]
  $defs?: Record<string, object>
}

interface Schemas {
  input: ObjectSchema
  output: ObjectSchema
}
/** Created when somebody first asks: few servers are asked. */
const schemas = new Map<Task, Schemas>()

/** Returns the JSON Schemas of a task: of its request without `model` and the fields of streams, and of its result. */
export function schemasOfTask(task: Task): Schemas {
  const known = schemas.get(task)
  if (known) return known
  const { request, result } = taskRecord(task)
  const { properties: all = {}, required = [], $defs } = schemaOf(request)
  const { model: _, stream: __, stream_options: ___, ...properties } = all
  const made: Schemas = {
    input: {
      type: 'object',
      properties,
      required: required.filter(name => name in properties),
      ...($defs ? { $defs } : {}),
    },
    output: schemaOf(result),
  }
  schemas.set(task, made)
  return made
}

/** Returns the JSON Schema of an object. A schema with a name is a reference to its definition, which is returned. */
function schemaOf(schema: z.ZodType): ObjectSchema {
  const { $schema: _, $ref, $defs = {}, ...rest } = z.toJSONSchema(schema, emitted) as ObjectSchema & { $ref?: string }
  if ($ref === undefined) return { ...rest, ...(Object.keys($defs).length > 0 ? { $defs } : {}) }
  const { [$ref.slice('#/$defs/'.length)]: own, ...others } = $defs
  return { ...own, ...(Object.keys(others).length > 0 ? { $defs: others } : {}) }
}

/** What each task does, in one or two sentences. */
export const taskDescriptions: Record<Task, string> = {
  'std/chat-completion': 'Ask a chat model of this server. Returns its answer to the messages.',
  'std/completion': 'Continue a text with a language model of this server.',
  'std/embeddings': 'Turn texts into vectors with an embedding model of this server.',
  'std/rerank': 'Order documents by their relevance to a query.',
  'std/score': 'Score how well pairs of texts fit together.',
  'std/audio-speech': 'Turn text into spoken audio. Returns an audio file.',
  'std/audio-transcription': 'Turn speech into text in its language. Name the audio by `url` or `file_id`.',
  'std/audio-translation': 'Turn speech into English text. Name the audio by `url` or `file_id`.',
  'std/image-generation': 'Generate images from a prompt. Returns image files.',
  'std/image-edit': 'Edit an image by a prompt. Returns image files.',
  'std/moderation': 'Say whether texts or images are harmful, and in which way.',
  'slug/text-to-image': 'Generate images from a prompt. Returns image files.',
  'slug/image-to-image': 'Change an image by a prompt. Returns image files.',
  'slug/inpainting': 'Replace the masked part of an image by a prompt. Returns image files.',
  'slug/text-to-video': 'Generate a video from a prompt. Takes minutes; returns a video file.',
  'slug/image-to-video': 'Animate an image by a prompt. Takes minutes; returns a video file.',
  'slug/speech-to-video': 'Animate an image to speech. Takes minutes; returns a video file.',
  'slug/video-interpolation': 'Add frames between those of a video. Returns a video file.',
}
