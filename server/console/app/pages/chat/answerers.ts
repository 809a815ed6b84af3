import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useSession } from '../../api/client.ts'
import type { ModelChoice } from '../playground/choices.ts'
import type { OpenedState } from './conversation/opened.ts'

/** The most models that answer side by side. */
export const maxAnswerers = 3

/**
 * The models that answer next, at least one: those that a person has chosen; else that of the address, of the last answer or
 * of the last conversation, the first of them that still exists; else the first model.
 */
export function useAnswerers(able: readonly ModelChoice[], { messages }: OpenedState) {
  const { session } = useSession()
  const [search] = useSearchParams()
  const key = `infer.person.chat.model.${session.token.id}`
  const [begun] = useState(() => [
    search.get('model'),
    messages.findLast(({ role }) => role === 'assistant')?.model,
    localStorage.getItem(key),
  ])
  const [ids, setIds] = useState<readonly string[]>()
  const known = (id: string | null | undefined) => able.find(one => one.id === id)
  const chosen = (ids ?? []).flatMap(id => known(id) ?? [])
  const first = begun.map(known).find(Boolean) ?? able[0]!
  const models = chosen.length > 0 ? chosen : [first]
  const choose = (next: readonly string[]) => {
    setIds(next)
    try {
      localStorage.setItem(key, next[0]!)
    } catch {
      // The browser has no room: the choice lasts as long as the page.
    }
  }
  return {
    models,
    /** Puts a model at a place. */
    change: (at: number, id: string) => choose(models.map(one => one.id).with(at, id)),
    add: () => choose([...models, able.find(one => !models.includes(one))!].map(one => one.id)),
    remove: (at: number) => choose(models.map(one => one.id).toSpliced(at, 1)),
  }
}
export type AnswererChoice = ReturnType<typeof useAnswerers>
