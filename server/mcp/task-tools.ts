import { z } from 'zod'
import { modelAllowed } from '../../core/accounts/model-allowed.ts'
import { impliedBy, type Task } from '../../core/schemas/task.ts'
import { taskRecord, taskRecords } from '../../core/tasks/registry.ts'
import type { Call } from '../call.ts'
import { emitted } from '../docs/json-schema.ts'
import type { Owners } from '../owners.ts'

/** A tool as `tools/list` shows it. */
export interface Tool {
  name: string
  title: string
  description: string
  inputSchema: object
  outputSchema?: object
  annotations: object
}

/** What a model of the client reads before it chooses a tool. */
const descriptions: Record<Task, string> = {
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

/** The tasks that are tools: all that engines do. The others do the same work in OpenAI's form. */
const toolTasks = taskRecords.map(({ id }) => id).filter(id => impliedBy[id] === undefined)
const nameOf = (task: Task): string => task.slice(task.indexOf('/') + 1).replaceAll('-', '_')
const byName = new Map(toolTasks.map(task => [nameOf(task), task]))

/** Returns the task that a tool does; undefined if there is no such tool. */
export const taskOfTool = (name: string): Task | undefined => byName.get(name)

/** Ids of the enabled models that do the task and that the token may use. */
export const modelsFor = (task: Task, call: Call, { registry }: Pick<Owners, 'registry'>): string[] =>
  [...registry.catalog().values()]
    .filter(({ id, tasks }) => tasks.includes(task) && modelAllowed(call.caller.token.models, id))
    .map(({ id }) => id)

interface ObjectSchema {
  $schema?: string
  type?: string
  properties?: Record<string, object>
  required?: string[]
  $defs?: Record<string, object>
}
interface Schemas {
  input: ObjectSchema
  output: ObjectSchema | undefined
}
/** Created when a client first lists the tools: few servers have such clients. */
const schemas = new Map<Task, Schemas>()

function schemasOf(task: Task): Schemas {
  const known = schemas.get(task)
  if (known) return known
  const { request, result, runner } = taskRecord(task)
  const { properties: all = {}, required = [], $defs } = schemaOf(request)
  const { model: _, stream: __, stream_options: ___, ...properties } = all
  const output = schemaOf(result)
  const made: Schemas = {
    input: {
      type: 'object',
      properties,
      required: required.filter(name => name in properties),
      ...($defs ? { $defs } : {}),
    },
    // The format of a transcription decides its shape.
    output: output.type === 'object' && runner !== 'transcription' ? output : undefined,
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

/** Returns one tool for each task that a model does which the token may use. */
export function taskTools(call: Call, owners: Pick<Owners, 'registry'>): Tool[] {
  return toolTasks.flatMap(task => {
    const models = modelsFor(task, call, owners)
    if (models.length === 0) return []
    const { title, files } = taskRecord(task)
    const { input, output } = schemasOf(task)
    const model = { type: 'string', enum: models, description: 'The model that does it.' }
    return {
      name: nameOf(task),
      title: title[0]!.toUpperCase() + title.slice(1),
      description: descriptions[task],
      inputSchema: {
        ...input,
        properties: { model: models.length === 1 ? { ...model, default: models[0] } : model, ...input.properties },
        required: [...(models.length === 1 ? [] : ['model']), ...(input.required ?? [])],
      },
      ...(output ? { outputSchema: output } : {}),
      annotations: { readOnlyHint: files === undefined, destructiveHint: false, openWorldHint: false },
    }
  })
}
