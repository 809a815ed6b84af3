/** One row of `taskTable`. */
export interface TaskRow {
  /** Name for people. */
  name: string
  /** The family of code that runs it. */
  kind: 'text' | 'speech' | 'transcription' | 'image' | 'generation' | 'step' | 'wait'
  /** What it needs of an engine: its own operation, then those by which other engines do it instead. None for what needs no model. */
  operations: readonly string[]
  /**
   * `assigned`: a model has it only if the operator says so, beside a task with the same operation. `implied`: a model
   * has it if it has another task with the same operation, so it is never listed.
   */
  given?: 'assigned' | 'implied'
  /** Commands of the terminal that need a model for it. */
  commands?: readonly string[]
  /** What a generation task makes. */
  makes?: 'image' | 'video'
  /** The files without which a generation task cannot run. */
  media?: readonly ('image' | 'mask' | 'video' | 'audio')[]
}

const generation = <
  const Operation extends string,
  const Makes extends 'image' | 'video',
  const Media extends NonNullable<TaskRow['media']>,
>(
  name: string,
  operation: Operation,
  makes: Makes,
  media: Media,
) => ({ name, kind: 'generation', operations: [operation], makes, media }) as const

/**
 * The facts about tasks that the layers below `core/tasks` and the console need: models, files, engines, the store. All
 * else is in the records of `core/tasks`. Engines know operations and no tasks, so one operation can serve several
 * tasks, and a task that needs no new operation needs no new engine. Plain data without imports.
 */
export const taskTable = {
  'std/chat-completion': { name: 'Chat', kind: 'text', operations: ['chat'], commands: ['run', 'chat'] },
  'std/completion': { name: 'Completion', kind: 'text', operations: ['complete'] },
  'std/embeddings': { name: 'Embeddings', kind: 'text', operations: ['embed'], commands: ['embed'] },
  'std/rerank': { name: 'Rerank', kind: 'text', operations: ['rerank'], commands: ['rerank'] },
  'std/score': { name: 'Score', kind: 'text', operations: ['score', 'rerank', 'embed'] },
  'std/moderation': { name: 'Moderation', kind: 'text', operations: ['classify', 'chat'], given: 'assigned' },
  'std/audio-speech': { name: 'Speech', kind: 'speech', operations: ['synthesize'], commands: ['speak'] },
  'std/audio-transcription': {
    name: 'Transcription',
    kind: 'transcription',
    operations: ['transcribe'],
    commands: ['transcribe'],
  },
  'std/audio-translation': { name: 'Audio translation', kind: 'transcription', operations: ['translate'] },
  'std/image-generation': {
    name: 'Image',
    kind: 'image',
    operations: ['create-image'],
    given: 'implied',
    commands: ['image'],
  },
  'std/image-edit': { name: 'Image edit', kind: 'image', operations: ['edit-image', 'inpaint'], given: 'implied' },
  'slug/text-to-image': generation('Text to image', 'create-image', 'image', []),
  'slug/image-to-image': generation('Image to image', 'edit-image', 'image', ['image']),
  'slug/inpainting': generation('Inpainting', 'inpaint', 'image', ['image', 'mask']),
  'slug/text-to-video': generation('Text to video', 'create-video', 'video', []),
  'slug/image-to-video': generation('Image to video', 'animate-image', 'video', ['image']),
  'slug/speech-to-video': generation('Speech to video', 'animate-speech', 'video', ['image', 'audio']),
  'slug/video-interpolation': generation('Video interpolation', 'interpolate', 'video', ['video']),
  'text/template': { name: 'Template', kind: 'step', operations: [] },
  'text/split': { name: 'Split text', kind: 'step', operations: [] },
  'text/extract': { name: 'Extract', kind: 'step', operations: [] },
  'json/select': { name: 'Select', kind: 'step', operations: [] },
  'wait/approval': { name: 'Approval', kind: 'wait', operations: [] },
  'wait/event': { name: 'Wait for event', kind: 'wait', operations: [] },
  'wait/until': { name: 'Wait until', kind: 'wait', operations: [] },
  'workflow/run': { name: 'Run workflow', kind: 'step', operations: [] },
} as const satisfies Record<string, TaskRow>

/** The model id of jobs without a model: no model can have it. */
export const noModelId = '(none)'
