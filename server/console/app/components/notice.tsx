import { CircleAlert, CircleCheck, Info, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'

const kinds = {
  info: { icon: Info, look: 'bg-accent-soft text-accent' },
  good: { icon: CircleCheck, look: 'bg-good-soft text-good' },
  warning: { icon: TriangleAlert, look: 'bg-warning-soft text-warning' },
  bad: { icon: CircleAlert, look: 'bg-bad-soft text-bad' },
}

/** A sentence that a person should see: `bad` and `warning` are read aloud at once. */
export function Notice({
  kind,
  children,
  className = '',
}: {
  kind: keyof typeof kinds
  children: ReactNode
  className?: string
}) {
  const { icon: Icon, look } = kinds[kind]
  return (
    <div
      role={kind === 'bad' || kind === 'warning' ? 'alert' : 'status'}
      className={`flex items-start gap-2 rounded-md px-3 py-2 ${look} ${className}`}
    >
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <div className="flex min-w-0 flex-1 flex-wrap items-center gap-2 break-words">{children}</div>
    </div>
  )
}
