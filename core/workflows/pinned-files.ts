import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Dag, isPinned } from '../dag/definition.ts'
import { isId } from '../ids.ts'
import type { Store } from '../store/store.ts'

/** How many files are looked up in one turn of the event loop. */
const foundAtOnce = 32

/** The id of a file in a URL of this server, under whatever host name and however old; undefined for any other text. */
function idInUrl(text: string): string | undefined {
  if (text.length > 2048 || !/^https?:/i.test(text)) return undefined
  return /^https?:\/\/[^/?#]+\/files\/(file-[0-9A-Z]{26})(?:[/?#]|$)/i.exec(text)?.[1]
}

/**
 * Returns a definition in which pinned results name files of the organization by id, because a signed URL expires. URLs of
 * other files stay.
 */
export async function withFileIds(dag: Dag, organizationId: string, files: Pick<Store['files'], 'find'>): Promise<Dag> {
  const nodes = { ...dag.nodes }
  const ownId = async (id: string) => ((await files.find(id))?.organizationId === organizationId ? id : undefined)
  for (const [name, node] of Object.entries(dag.nodes)) {
    if (!isPinned(node)) continue
    const pin = await replaced(node.pin, text => {
      const id = idInUrl(text)
      return id === undefined ? undefined : ownId(id)
    })
    if (pin !== node.pin) nodes[name] = { ...node, pin }
  }
  return { ...dag, nodes }
}

/** Returns a pinned result with URLs where results have such, in place of the ids of files that the reader may have. */
export const withFileUrls = (pin: unknown, urlOf: (id: string) => Promise<string | undefined>): Promise<unknown> =>
  replaced(pin, (text, name) => (isUrlField(name) && isId(text, 'file-') ? urlOf(text) : undefined))

const isUrlField = (name: string): boolean => name === 'url' || name.endsWith('_url')

interface Place {
  holder: Record<string, unknown>
  name: string
  text: string
}

/** Returns a copy in which texts are replaced by what `change` returns for them; the value itself if it changes none. */
async function replaced(
  value: unknown,
  change: (text: string, name: string) => Promise<string | undefined> | undefined,
): Promise<unknown> {
  const copy = { value: structuredClone(value) }
  const places: Place[] = []
  findTexts(copy, places)
  let changed = false
  let found = 0
  for (const { holder, name, text } of places) {
    const changing = change(text, name)
    if (!changing) continue
    const next = await changing
    if (++found % foundAtOnce === 0) await nextTurn()
    if (next === undefined) continue
    holder[name] = next
    changed = true
  }
  return changed ? copy.value : value
}

function findTexts(holder: object, places: Place[]): void {
  for (const [name, part] of Object.entries(holder) as [string, unknown][])
    if (typeof part === 'string') places.push({ holder: holder as Record<string, unknown>, name, text: part })
    else if (part !== null && typeof part === 'object') findTexts(part, places)
}
