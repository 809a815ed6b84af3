/** One row of `taskTable`. */
interface TaskRow {
  /** Name for people. */
  name: string
  /** The family of code that runs it. */
  kind: 'text' | 'speech' | 'transcription' | 'image' | 'generation'
  /** What it needs of an engine: its own operation, then those by which other engines do it instead. */
  operations: readonly [string, ...string[]]
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
  'slug/text-to-image': {
    name: 'Text to image',
    kind: 'generation',
    operations: ['create-image'],
    makes: 'image',
    media: [],
  },
  'slug/image-to-image': {
    name: 'Image to image',
    kind: 'generation',
    operations: ['edit-image'],
    makes: 'image',
    media: ['image'],
  },
  'slug/inpainting': {
    name: 'Inpainting',
    kind: 'generation',
    operations: ['inpaint'],
    makes: 'image',
    media: ['image', 'mask'],
  },
  'slug/text-to-video': {
    name: 'Text to video',
    kind: 'generation',
    operations: ['create-video'],
    makes: 'video',
    media: [],
  },
  'slug/image-to-video': {
    name: 'Image to video',
    kind: 'generation',
    operations: ['animate-image'],
    makes: 'video',
    media: ['image'],
  },
  'slug/speech-to-video': {
    name: 'Speech to video',
    kind: 'generation',
    operations: ['animate-speech'],
    makes: 'video',
    media: ['image', 'audio'],
  },
  'slug/video-interpolation': {
    name: 'Video interpolation',
    kind: 'generation',
    operations: ['interpolate'],
    makes: 'video',
    media: ['video'],
  },
} as const satisfies Record<string, TaskRow>
