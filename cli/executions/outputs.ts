import type { JobFile } from '../jobs/job.ts'
import type { Execution } from './execution.ts'

/** What a node leaves to whoever ran the workflow: texts to print, and files to save. */
export interface NodeOutput {
  node: string
  texts: string[]
  files: JobFile[]
  seed: number | undefined
}

/**
 * What an execution has made, node by node: of each node what it keeps (`outputs` of the definition), and the whole of
 * what nothing comes after. `last` are those nodes.
 */
export function outputsOf({ outputs }: Execution, order: readonly string[], last: ReadonlySet<string>): NodeOutput[] {
  return order.flatMap(node => {
    const output = outputs && Object.hasOwn(outputs, node) ? outputs[node] : undefined
    if (!output) return []
    const { result, values } = output
    const files = filesIn(result)
    const named = Object.values(values)
    if (named.length === 0 && !last.has(node)) return []
    // Of what makes files, what describes them is told by the files.
    const isText = (value: unknown) => typeof value === 'string' && !files.some(({ url }) => url === value)
    const texts =
      files.length > 0 ? named.filter(isText).map(written) : named.length > 0 ? named.map(written) : [textOf(result)]
    const seed = (result as { seed_used?: unknown } | null)?.seed_used
    return [{ node, texts, files, seed: typeof seed === 'number' ? seed : undefined }]
  })
}

const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The words of an answer, where it is one; else all of it as JSON. */
function textOf(result: unknown): string {
  const { choices, text } = (result ?? {}) as { choices?: unknown; text?: unknown }
  const [first] = Array.isArray(choices) ? (choices as { message?: { content?: unknown }; text?: unknown }[]) : []
  const words = first?.message?.content ?? first?.text ?? text
  return typeof words === 'string' ? words : JSON.stringify(result)
}

/** The pictures, videos and sounds of a result, whole or cut down to their addresses. */
function filesIn(result: unknown): JobFile[] {
  const { images, data, video, audio_url, ...facts } = (result ?? {}) as Record<
    'images' | 'data' | 'video' | 'audio_url',
    unknown
  >
  const sound = audio_url === undefined ? undefined : { ...facts, url: audio_url }
  // The same pictures in the words of OpenAI, where only these are kept.
  const pictures = [images, data].find(list => Array.isArray(list)) as unknown[] | undefined
  return [...(pictures ?? []), video, sound].flatMap(file => {
    const { url } = (file ?? {}) as { url?: unknown }
    if (typeof url !== 'string' || !URL.canParse(url)) return []
    const name = new URL(url).pathname.split('/').at(-1)
    return [{ ...(file as object), url, file_name: (file as JobFile).file_name ?? name }]
  })
}
