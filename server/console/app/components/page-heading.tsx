import type { ReactNode } from 'react'

/** The title of a page, what it is about, and its actions. */
export function PageHeading({
  title,
  children,
  actions,
}: {
  title: ReactNode
  children?: ReactNode
  actions?: ReactNode
}) {
  return (
    <div className="mb-4 flex flex-wrap items-start justify-between gap-3">
      <div className="min-w-0">
        <h1 className="text-xl font-semibold break-words">{title}</h1>
        {children && <p className="text-muted mt-0.5">{children}</p>}
      </div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </div>
  )
}

/** A part of a page with a heading. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title} className="mb-6 min-w-0">
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  )
}

/** Nothing is here yet: says so, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="border-line text-muted rounded-lg border border-dashed px-4 py-8 text-center">
      <p className="text-text font-medium">{title}</p>
      {children && <div className="mt-1 flex flex-col items-center gap-3">{children}</div>}
    </div>
  )
}
