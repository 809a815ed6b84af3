import { type KeyboardEvent, type ReactNode, useId } from 'react'

/** Views of one thing, of which one is shown. Arrow keys change between them. */
export function Tabs<Name extends string>({
  label,
  names,
  offered = Object.keys(names) as Name[],
  current,
  choose,
  listClass = 'mb-4',
  panelClass = '',
  children,
}: {
  label: string
  /** Names by the ids of the views. */
  names: Readonly<Record<Name, string>>
  /** The views in their order: all, unless others are said. */
  offered?: readonly Name[]
  current: Name
  choose: (id: Name) => void
  /** Where the tabs stand, and what they show. */
  listClass?: string
  panelClass?: string
  children: ReactNode
}) {
  const id = useId()
  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    const next = offered[(offered.indexOf(current) + step + offered.length) % offered.length]!
    choose(next)
    event.currentTarget.querySelector<HTMLElement>(`[id="${id}-${next}"]`)?.focus()
  }
  return (
    <>
      <div
        role="tablist"
        aria-label={label}
        onKeyDown={press}
        className={`flex gap-1 overflow-x-auto shadow-[inset_0_-1px_var(--color-line)] ${listClass}`}
      >
        {offered.map(tab => (
          <button
            key={tab}
            id={`${id}-${tab}`}
            type="button"
            role="tab"
            aria-selected={tab === current}
            aria-controls={`${id}-panel`}
            tabIndex={tab === current ? 0 : -1}
            onClick={() => choose(tab)}
            className={`border-b-2 px-3 py-2 whitespace-nowrap focus-visible:-outline-offset-2 ${tab === current ? 'border-accent text-accent font-medium' : 'text-muted hover:text-text border-transparent'}`}
          >
            {names[tab]}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`} className={panelClass}>
        {children}
      </div>
    </>
  )
}
