import { Plus, X } from 'lucide-react'
import { useId } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { controlClass, SelectField, TextArea, TextField } from '../../../components/fields.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { type FormField, textsOf } from './fields.ts'
import { MediaField } from './media-field.tsx'

interface ControlProps {
  field: FormField
  value: unknown
  change: (value: unknown) => void
  error: string | undefined
  /** Values that are offered for a line of text, such as voices. */
  suggestions?: readonly string[] | undefined
  /** For a mask: where the image that it is drawn over can be loaded. */
  image?: string | undefined
  /** Called when a mask was drawn, which is white where OpenAI's masks are transparent. */
  drawn: () => void
}

/** The control of one field, by its kind. */
export function FieldControl({ field, value, change, error, suggestions, image, drawn }: ControlProps) {
  const { label, hint, kind } = field
  const list = useId()
  const facts = { label, hint, error }
  const text = typeof value === 'string' ? value : ''
  const take = (event: { target: { value: string } }) => change(event.target.value)
  switch (kind) {
    case 'media':
      return <MediaField {...facts} name={field.name} value={text} change={change} image={image} drawn={drawn} />
    case 'texts':
      return <TextList {...facts} value={textsOf(value ?? '')} change={change} />
    case 'text':
      return <TextArea {...facts} rows={field.main ? 4 : 2} value={text} onChange={take} />
    case 'json':
      return (
        <TextArea {...facts} rows={3} className="font-mono text-xs" spellCheck={false} value={text} onChange={take} />
      )
    case 'number':
      return (
        <TextField
          {...facts}
          type="number"
          inputMode={field.whole ? 'numeric' : 'decimal'}
          step={field.whole ? 1 : 'any'}
          min={field.minimum}
          max={field.maximum}
          value={text}
          onChange={take}
        />
      )
    case 'choice':
    case 'yes-no': {
      const { byDefault, yes, no } = playgroundText
      const options =
        kind === 'yes-no'
          ? [
              { value: 'yes', name: yes },
              { value: 'no', name: no },
            ]
          : field.options.map(one => ({ value: one, name: one.replaceAll('_', ' ') }))
      return (
        <SelectField {...facts} options={[{ value: '', name: byDefault }, ...options]} value={text} onChange={take} />
      )
    }
    default:
      return (
        <>
          <TextField {...facts} value={text} onChange={take} {...(suggestions ? { list } : {})} />
          {suggestions && (
            <datalist id={list}>
              {suggestions.map(one => (
                <option key={one} value={one} />
              ))}
            </datalist>
          )}
        </>
      )
  }
}

/** Several texts, each in a control of its own. */
function TextList({
  label,
  hint,
  error,
  value,
  change,
}: {
  label: string
  hint: string
  error: string | undefined
  value: readonly string[]
  change: (value: string[]) => void
}) {
  const id = useId()
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ')
  return (
    <fieldset className="space-y-1.5" aria-describedby={described || undefined}>
      <legend className="text-sm font-medium">{label}</legend>
      {value.map((text, at) => (
        <div key={at} className="flex items-start gap-1">
          <textarea
            rows={2}
            aria-label={playgroundText.numbered(label, at + 1)}
            aria-invalid={error ? true : undefined}
            value={text}
            onChange={event => change(value.with(at, event.target.value))}
            className={`${controlClass} py-1.5`}
          />
          {value.length > 1 && (
            <IconButton
              icon={X}
              label={playgroundText.removeText(at + 1)}
              onClick={() => change(value.toSpliced(at, 1))}
            />
          )}
        </div>
      ))}
      <Button small icon={Plus} onClick={() => change([...value, ''])}>
        {playgroundText.addText}
      </Button>
      {hint && (
        <p id={`${id}-hint`} className="text-muted text-xs">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} className="text-bad text-xs">
          {error}
        </p>
      )}
    </fieldset>
  )
}
