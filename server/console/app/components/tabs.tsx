import { type KeyboardEvent, type ReactNode, useId } from 'react'

/** Views of one thing, of which one is shown. Arrow keys change between them. */
export function Tabs<Name extends string>({
  label,
  tabs,
  current,
  choose,
  children,
}: {
  label: string
  tabs: readonly { id: Name; name: string }[]
  current: Name
  choose: (id: Name) => void
  children: ReactNode
}) {
  const id = useId()
  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    const at = tabs.findIndex(tab => tab.id === current)
    const next = tabs[(at + step + tabs.length) % tabs.length]!
    choose(next.id)
    event.currentTarget.querySelector<HTMLElement>(`[id="${id}-${next.id}"]`)?.focus()
  }
  return (
    <>
      <div
        role="tablist"
        aria-label={label}
        onKeyDown={press}
        className="mb-4 flex gap-1 overflow-x-auto shadow-[inset_0_-1px_var(--color-line)]"
      >
        {tabs.map(tab => (
          <button
            key={tab.id}
            id={`${id}-${tab.id}`}
            type="button"
            role="tab"
            aria-selected={tab.id === current}
            aria-controls={`${id}-panel`}
            tabIndex={tab.id === current ? 0 : -1}
            onClick={() => choose(tab.id)}
            className={`border-b-2 px-3 py-2 whitespace-nowrap focus-visible:-outline-offset-2 ${tab.id === current ? 'border-accent text-accent font-medium' : 'text-muted hover:text-text border-transparent'}`}
          >
            {tab.name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`}>
        {children}
      </div>
    </>
  )
}
