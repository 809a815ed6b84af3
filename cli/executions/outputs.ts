import type { JobFile } from '../jobs/job.ts'
import type { Execution } from './execution.ts'

/** The output of a node for the user: texts to print, and files to save. */
export interface NodeOutput {
  node: string
  texts: string[]
  files: JobFile[]
  seed: number | undefined
}

/**
 * Returns the outputs of an execution, node by node: the values that the definition's `outputs` name, and the complete
 * result of each node in `last`, the nodes without a successor.
 */
export function outputsOf({ outputs }: Execution, order: readonly string[], last: ReadonlySet<string>): NodeOutput[] {
  return order.flatMap(node => {
    const output = outputs && Object.hasOwn(outputs, node) ? outputs[node] : undefined
    if (!output) return []
    const { result, values } = output
    const files = filesIn(result)
    const named = Object.values(values)
    if (named.length === 0 && !last.has(node)) return []
    // Of a node that makes files, only texts are printed: the other values describe the files.
    const isText = (value: unknown) => typeof value === 'string' && !files.some(({ url }) => url === value)
    const texts =
      files.length > 0 ? named.filter(isText).map(stringOf) : named.length > 0 ? named.map(stringOf) : [textOf(result)]
    const seed = (result as { seed_used?: unknown } | null)?.seed_used
    return [{ node, texts, files, seed: typeof seed === 'number' ? seed : undefined }]
  })
}

const stringOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Returns the text of a chat answer or completion; any other result as JSON. */
function textOf(result: unknown): string {
  const { choices, text } = (result ?? {}) as { choices?: unknown; text?: unknown }
  const [first] = Array.isArray(choices) ? (choices as { message?: { content?: unknown }; text?: unknown }[]) : []
  const content = first?.message?.content ?? first?.text ?? text
  return typeof content === 'string' ? content : JSON.stringify(result)
}

/** Returns the image, video and audio files of a result. */
function filesIn(result: unknown): JobFile[] {
  const { images, data, video, audio_url, ...facts } = (result ?? {}) as Record<
    'images' | 'data' | 'video' | 'audio_url',
    unknown
  >
  const audio = audio_url === undefined ? undefined : { ...facts, url: audio_url }
  // `data` has the same images in the OpenAI-compatible form, for results that keep only that one.
  const imageFiles = [images, data].find(list => Array.isArray(list)) as unknown[] | undefined
  return [...(imageFiles ?? []), video, audio].flatMap(file => {
    const { url } = (file ?? {}) as { url?: unknown }
    if (typeof url !== 'string' || !URL.canParse(url)) return []
    const name = new URL(url).pathname.split('/').at(-1)
    return [{ ...(file as object), url, file_name: (file as JobFile).file_name ?? name }]
  })
}
