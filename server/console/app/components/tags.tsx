import { useId, useState } from 'react'
import { Link } from 'wouter'
import { tagsText as text } from '../text/tags.ts'
import { TextField } from './fields.tsx'
import { addressWith, useAddress } from './use-address.ts'

/** The tags of something in the list at `path`; each leads to what has it. Other filters stay. */
export function TagLinks({ path, tags }: { path: string; tags: readonly string[] }) {
  const [params] = useAddress()
  if (tags.length === 0) return null
  return (
    <span className="flex flex-wrap gap-1 max-md:justify-end">
      {tags.map(tag => (
        <Link
          key={tag}
          href={addressWith(path, params, { tag, after: undefined })}
          aria-label={text.only(tag)}
          className="bg-raised text-muted hover:text-text inline-flex min-h-6 items-center rounded px-1.5 text-xs break-all"
        >
          {tag}
        </Link>
      ))}
    </span>
  )
}

/**
 * The tag that a list is filtered by, which is the parameter `tag` of the address. `known` are offered. What is typed
 * takes effect on Enter, when the field is left, and when it is a known tag.
 */
export function TagFilter({ known }: { known: readonly string[] }) {
  const [params] = useAddress()
  const tag = params.get('tag') ?? ''
  return <TagField key={tag} tag={tag} known={known} />
}

function TagField({ tag, known }: { tag: string; known: readonly string[] }) {
  const [, change] = useAddress('push')
  const [draft, setDraft] = useState(tag)
  const id = useId()
  const commit = (next: string) => next !== tag && change({ tag: next, after: undefined })
  return (
    <>
      <TextField
        label={text.filter}
        value={draft}
        list={id}
        maxLength={64}
        autoComplete="off"
        change={next => {
          setDraft(next)
          if (next === '' || known.includes(next)) commit(next)
        }}
        onBlur={() => commit(draft.trim())}
        onKeyDown={event => event.key === 'Enter' && commit(draft.trim())}
      />
      <datalist id={id}>
        {known.map(one => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  )
}

/** The tags of the rows of a list, each once and in order. */
export const tagsOf = (rows: readonly { tags: readonly string[] }[]): string[] =>
  [...new Set(rows.flatMap(({ tags }) => tags))].sort()
