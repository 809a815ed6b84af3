import type { ReactNode } from 'react'

const looks = {
  plain: 'bg-raised text-muted',
  active: 'bg-accent-soft text-accent',
  good: 'bg-good-soft text-good',
  warning: 'bg-warning-soft text-warning',
  bad: 'bg-bad-soft text-bad',
}
export type BadgeKind = keyof typeof looks

/** A state in one word. The word says it; the colour only helps. */
export function Badge({ kind, children }: { kind: BadgeKind; children: ReactNode }) {
  return (
    <span className={`inline-block rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${looks[kind]}`}>
      {children}
    </span>
  )
}
