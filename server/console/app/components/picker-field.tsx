import { ChevronsUpDown } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import { searchListText as text } from '../text/search-list.ts'
import { controlClass, FormField } from './fields.tsx'
import type { Choice } from './matching.ts'
import { SearchList } from './search-list.tsx'

interface PickerFieldProps {
  label: string
  hint?: ReactNode
  error?: string | undefined
  value: string
  choices: readonly Choice[]
  /** Learns what is typed, where the choices depend on it; `isCut`: there are others, which typing finds. */
  typed?: ((query: string) => void) | undefined
  isCut?: boolean
  /** What choosing nothing is called, where that is possible. */
  none?: string
  change: (id: string) => void
  disabled?: boolean
  isLabelHidden?: boolean
}

/** One of many values, which opens as a list with a search: a task, a model. For a few plain words use `SelectField`. */
export function PickerField({
  label,
  hint,
  error,
  value,
  choices,
  typed,
  isCut = false,
  none,
  change,
  disabled = false,
  isLabelHidden = false,
}: PickerFieldProps) {
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const all = none === undefined ? choices : [{ id: '', name: none }, ...choices]
  const chosen = all.find(({ id }) => id === value)
  const open = () => {
    typed?.('')
    setOpen(true)
  }
  const close = () => {
    setOpen(false)
    button.current?.focus()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !isOpen) return
    // It ends the list alone, and not the dialog or the view that the field is in.
    event.preventDefault()
    event.stopPropagation()
    close()
  }
  return (
    <FormField label={label} hint={hint} error={error} isLabelHidden={isLabelHidden}>
      {control => (
        <div
          className="relative"
          onKeyDown={press}
          onBlur={({ currentTarget, relatedTarget }) => {
            if (!currentTarget.contains(relatedTarget)) setOpen(false)
          }}
        >
          <button
            {...control}
            ref={button}
            type="button"
            // Its name is the label, then what is chosen.
            aria-labelledby={`${control.id}-label ${control.id}-value`}
            aria-haspopup="listbox"
            aria-expanded={isOpen}
            disabled={disabled}
            // Browsers that give a pressed button no focus would close the list.
            onPointerDown={event => isOpen && event.preventDefault()}
            onClick={() => (isOpen ? close() : open())}
            onKeyDown={event => {
              if (isOpen || !['ArrowDown', 'ArrowUp'].includes(event.key)) return
              event.preventDefault()
              open()
            }}
            className={`${controlClass} hover:border-muted flex items-center gap-2 text-left`}
          >
            {chosen?.mark}
            <span id={`${control.id}-value`} className="min-w-0 flex-1 truncate">
              {chosen?.name ?? value}
            </span>
            <ChevronsUpDown aria-hidden className="text-muted size-4 shrink-0" />
          </button>
          {isOpen && (
            <div className="bg-surface border-line animate-panel absolute z-40 mt-1 w-full min-w-64 overflow-hidden rounded-lg border shadow-lg">
              <SearchList
                label={text.search(label)}
                choices={all}
                current={value}
                {...(typed ? { typed } : {})}
                isCut={isCut}
                className="max-h-72"
                choose={id => {
                  close()
                  change(id)
                }}
              />
            </div>
          )}
        </div>
      )}
    </FormField>
  )
}
