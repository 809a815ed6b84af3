import { everyItem } from '../../../../../../core/workflows/references.ts'
import { editorText } from '../../../text/editor.ts'
import { outputText } from './references.ts'
import type { Path } from './workflow-document.ts'

/** Paths that have a name of their own, and what it is, without positions in lists. */
const known: Readonly<Record<string, string>> = {
  'messages.content': editorText.ports.message,
  'messages.content.text': editorText.ports.message,
  'messages.content.image_url.url': editorText.ports.messageImage,
  'choices.message.content': editorText.ports.answer,
  'choices.text': editorText.ports.answer,
  'images.url': editorText.ports.image,
  'images.b64_json': editorText.ports.image,
  'video.url': editorText.ports.video,
  'audio.url': editorText.ports.audio,
  'data.embedding': editorText.ports.embedding,
  url: editorText.ports.address,
}

/** `negative_prompt` → `Negative prompt`, `image_url` → `Image`. */
function wordsOf(name: string): string {
  const words = name
    .replace(/_(url|urls|id)$/, '')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
  return words === '' ? name : words[0]!.toUpperCase() + words.slice(1)
}

/** What people call the value at a path of inputs or of a result: `Prompt`, `Answer`, `Image 2`. */
export function portName(path: Path): string {
  const names = path.filter(step => typeof step === 'string')
  if (names.length === 0) return editorText.ports.result
  const name = known[names.join('.')] ?? wordsOf(names.at(-1)!)
  const positions = path.filter(step => typeof step === 'number')
  if (path.includes(everyItem)) return editorText.ports.all(name)
  const at = positions[0] ?? 0
  return at === 0 ? name : `${name} ${at + 1}`
}

/** The names of the ports of one side of a card: where two would have the same name, each is called by its path. */
export function portNames(paths: readonly Path[]): string[] {
  const names = paths.map(portName)
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return names.map((name, at) => (counts.get(name) === 1 ? name : outputText(paths[at]!)))
}
