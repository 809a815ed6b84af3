import { Search } from 'lucide-react'
import { shellText } from '../text/shell.ts'
import { controlClass } from './field.tsx'

/** The search of a page; `/` puts the cursor into it. */
export function SearchField({
  value,
  change,
  label = shellText.search,
}: {
  value: string
  change: (value: string) => void
  label?: string
}) {
  return (
    <div className="relative min-w-48 flex-1">
      <Search aria-hidden className="text-muted pointer-events-none absolute top-2.5 left-2.5 size-4" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onChange={event => change(event.target.value)}
        className={`${controlClass} pl-8`}
      />
    </div>
  )
}
