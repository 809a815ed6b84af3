import { Search } from 'lucide-react'
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react'
import { searchListText as text } from '../text/search-list.ts'
import { type Choice, matching } from './matching.ts'

interface SearchListProps {
  label: string
  choices: readonly Choice[]
  /** The id of what is chosen now. */
  current?: string
  choose: (id: string) => void
  /** Learns what is typed, for choices that depend on it. */
  typed?: (query: string) => void
  /** Whether there are choices that are not known here, which typing finds. */
  isCut?: boolean
  /** Rows at most; what is typed finds the others. */
  most?: number
  className?: string
}

/** A search with the list of what it finds. Arrow keys, Home and End move in the list, and Enter chooses. */
export function SearchList({
  label,
  choices,
  current,
  choose,
  typed,
  isCut = false,
  most = 100,
  className = '',
}: SearchListProps) {
  const id = useId()
  const [query, setQuery] = useState('')
  const all = useMemo(() => matching(choices, query), [choices, query])
  const found = useMemo(() => all.slice(0, most), [all, most])
  const hasMore = isCut || all.length > found.length
  const [marked, setMarked] = useState(current)
  const at = Math.max(
    0,
    found.findIndex(one => one.id === marked),
  )
  const active = found[at]
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    list.current?.querySelector('[data-active]')?.scrollIntoView({ block: 'nearest' })
  }, [active])
  const press = (event: KeyboardEvent) => {
    const last = found.length - 1
    const next = {
      ArrowDown: at === last ? 0 : at + 1,
      ArrowUp: at === 0 ? last : at - 1,
      Home: event.ctrlKey ? 0 : undefined,
      End: event.ctrlKey ? last : undefined,
      PageDown: Math.min(last, at + 8),
      PageUp: Math.max(0, at - 8),
    }[event.key]
    if (next !== undefined) setMarked(found[next]?.id)
    else if (event.key !== 'Enter') return
    else if (active) choose(active.id)
    // It neither sends the form that the list is in nor reaches what stands around it.
    event.preventDefault()
  }
  const groups = [...new Set(found.map(({ group }) => group))]
  return (
    <>
      <div className="border-line relative border-b">
        <Search aria-hidden className="text-muted pointer-events-none absolute top-3 left-3 size-4" />
        <input
          // The list is opened to be searched.
          autoFocus
          role="combobox"
          aria-label={label}
          aria-expanded
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={active && `${id}-${active.id}`}
          autoComplete="off"
          spellCheck={false}
          placeholder={label}
          value={query}
          onChange={({ target }) => {
            setQuery(target.value)
            setMarked(undefined)
            typed?.(target.value)
          }}
          onKeyDown={press}
          className="h-10 w-full bg-transparent pr-3 pl-9 outline-none"
        />
      </div>
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label={label}
        tabIndex={-1}
        className={`overflow-y-auto p-1 ${className}`}
      >
        {groups.map(group => (
          <div key={group ?? ''} role="group" aria-label={group ?? label}>
            {group !== undefined && (
              <p aria-hidden className="text-muted px-2 pt-2 pb-1 text-xs font-medium">
                {group}
              </p>
            )}
            {found
              .filter(one => one.group === group)
              .map(one => (
                <Row
                  key={one.id}
                  id={`${id}-${one.id}`}
                  choice={one}
                  active={one === active}
                  selected={one.id === current}
                  choose={choose}
                />
              ))}
          </div>
        ))}
        {found.length === 0 && <div role="group" aria-label={label} />}
      </div>
      <p
        role="status"
        className={all.length === 0 ? 'text-muted px-3 pb-3' : hasMore ? 'text-muted px-3 py-2' : 'sr-only'}
      >
        {all.length === 0
          ? text.nothing
          : isCut
            ? text.first(found.length)
            : hasMore
              ? text.some(found.length, all.length)
              : text.found(found.length)}
      </p>
    </>
  )
}

interface RowProps {
  id: string
  choice: Choice
  active: boolean
  selected: boolean
  choose: (id: string) => void
}

const Row = ({ id, choice: { id: value, name, note, mark }, active, selected, choose }: RowProps) => (
  <div
    id={id}
    role="option"
    aria-selected={selected}
    data-active={active || undefined}
    tabIndex={-1}
    // Keeps the focus in the search.
    onPointerDown={event => event.preventDefault()}
    onClick={() => choose(value)}
    className={`flex min-h-8 cursor-pointer items-center gap-2 rounded-md px-2 py-1 ${active ? 'bg-accent-soft' : 'hover:bg-raised'}`}
  >
    {mark}
    <span className={`min-w-0 flex-1 break-words ${selected ? 'font-medium' : ''}`}>{name}</span>
    {note && <span className="text-muted max-w-[50%] shrink-0 truncate text-xs">{note}</span>}
  </div>
)
