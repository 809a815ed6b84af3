import type { ReactNode } from 'react'

/** Something to choose from a list. */
export interface Choice {
  id: string
  name: string
  /** Further words, which are shown beside the name and found too. */
  note?: string | undefined
  /** Choices of one group stand together, below its name. */
  group?: string | undefined
  /** Its icon or colour. */
  mark?: ReactNode
}

/** Returns the choices that have all words of the query in their name, note or group. */
export function matching(choices: readonly Choice[], query: string): readonly Choice[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return choices
  return choices.filter(({ name, note = '', group = '' }) => {
    const all = `${name} ${note} ${group}`.toLowerCase()
    return words.every(word => all.includes(word))
  })
}
