import { Play, Plus, X } from 'lucide-react'
import { memo, type ReactNode, useCallback, useId, useMemo } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import {
  controlClass,
  describedBy,
  Hint,
  optionsOf,
  SelectField,
  TextArea,
  TextField,
  useOpened,
} from '../../../components/fields.tsx'
import { Section } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import type { ModelChoice, TaskChoice } from '../choices.ts'
import { type Origin, useKept } from '../kept.ts'
import type { SharedPrompt } from '../prompt.ts'
import { type Entered, enteredOf, type FormField, fieldsOf, formRequest, textsOf } from './fields.ts'
import { previewOf } from './files.tsx'
import { MediaField } from './media-field.tsx'
import { ShapeField } from './shape-field.tsx'
import { SliderField } from './slider-field.tsx'
import { isSlider } from './sliders.ts'
import { useErrors } from './use-errors.ts'

/** What a panel of the playground gets. */
export interface PanelProps {
  task: TaskChoice
  /** One, or two that are compared. */
  models: readonly ModelChoice[]
  /** Inputs of an earlier job, or a file to use. */
  initial: Record<string, unknown> | undefined
  origin: Origin
  /** What all tasks with a prompt share. */
  prompt: SharedPrompt
}

/**
 * What a person has entered for a task, which the tab keeps, the request that it makes, and what is wrong with it. `without`
 * never changes.
 */
export function useForm({ task, initial = {}, origin, prompt }: PanelProps, ...without: readonly string[]) {
  const fields = useMemo(() => fieldsOf(task).filter(({ name }) => !without.includes(name)), [task])
  const [own, setOwn] = useKept<Entered>(task.id, 'entered', origin, () => enteredOf(fields, initial))
  const entered = useMemo(() => ({ ...own, prompt: prompt.text }), [own, prompt.text])
  const { errors, setErrors, clear, check } = useErrors()
  const change = useCallback((name: string, value: unknown) => {
    if (name === 'prompt') prompt.change(value as string)
    else setOwn(now => ({ ...now, [name]: value }))
    clear(name)
  }, [])
  const { request, errors: faults } = useMemo(() => formRequest(fields, entered), [fields, entered])
  return {
    /** For `TaskForm`. */
    form: { fields, entered, change, errors },
    request,
    setErrors,
    /** Fills the form with a request, such as that of an earlier run. */
    fill: (inputs: Readonly<Record<string, unknown>>): void => {
      const filled = enteredOf(fields, inputs)
      setOwn(filled)
      setErrors({})
      if (typeof filled.prompt === 'string') prompt.change(filled.prompt)
    },
    /** Shows what is wrong. Returns whether the request can be sent. */
    check: (): boolean => check(faults),
  }
}

const gridClass = 'grid items-start gap-4 sm:grid-cols-2'
/** Two of these stand side by side. */
const isShort: ReadonlySet<FormField['kind']> = new Set(['line', 'number', 'choice', 'yes-no'])

/** The request of a task, which a person fills in and sends. */
export const RequestForm = ({
  title = playgroundText.request,
  run,
  children,
}: {
  title?: string
  run: () => void
  children: ReactNode
}) => (
  <Section title={title}>
    <form
      noValidate
      onSubmit={event => {
        event.preventDefault()
        run()
      }}
      onKeyDown={event => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        run()
      }}
      className="bg-surface border-line space-y-4 rounded-lg border p-4"
    >
      {children}
    </form>
  </Section>
)

/** Runs the request with one model or with both; Ctrl and Enter in a field do the same. */
export const RunButton = ({ models, busy = false }: Pick<PanelProps, 'models'> & { busy?: boolean }) => {
  const { run, runTwo, running, enter } = playgroundText
  return (
    <div className="flex flex-wrap items-center gap-3">
      <Button primary type="submit" icon={Play} busy={busy} label={busy ? running : models.length > 1 ? runTwo : run} />
      <p className="text-muted text-xs max-sm:hidden">{enter}</p>
    </div>
  )
}

/** The fields of a request: those that people need first, and the others behind one line. */
export function TaskForm({
  fields,
  entered,
  change,
  errors,
  suggestions = {},
  moreText = playgroundText.more,
}: {
  fields: readonly FormField[]
  entered: Entered
  change: (name: string, value: unknown) => void
  errors: Readonly<Record<string, string>>
  /** By the name of the field. */
  suggestions?: Readonly<Record<string, readonly string[] | undefined>>
  moreText?: string
}) {
  const chosen = [entered.image_url, entered.image].find(one => typeof one === 'string' && one !== '')
  const image = typeof chosen === 'string' ? previewOf(chosen) : undefined
  const control = (field: FormField) => (
    <Control
      key={field.name}
      field={field}
      value={entered[field.name]}
      change={change}
      error={errors[field.name]}
      suggestions={suggestions[field.name]}
      image={field.name.startsWith('mask') ? image : undefined}
    />
  )
  const first = fields.filter(({ main }) => main)
  const more = fields.filter(({ main }) => !main)
  const details = useOpened(more.some(({ name }) => errors[name] !== undefined))
  return (
    <>
      {first.length > 0 && <div className={gridClass}>{first.map(control)}</div>}
      {more.length > 0 && (
        <details ref={details} className="border-line rounded-md border">
          <summary className="px-3 py-2 font-medium">{moreText}</summary>
          <div className={`${gridClass} p-3 pt-1`}>{more.map(control)}</div>
        </details>
      )}
    </>
  )
}

type ControlProps = Omit<Parameters<typeof FieldControl>[0], 'change' | 'drawn'> & {
  change: (name: string, value: unknown) => void
}

/** A form has up to thirty fields: only the one that changes is drawn again. */
const Control = memo(function Control({ change, ...props }: ControlProps) {
  return (
    <div className={isShort.has(props.field.kind) ? '' : 'sm:col-span-2'}>
      <FieldControl
        {...props}
        change={value => change(props.field.name, value)}
        drawn={() => props.field.name === 'mask' && change('mask_mode', 'luma')}
      />
    </div>
  )
})

interface FieldControlProps {
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
function FieldControl({ field, value, change, error, suggestions, image, drawn }: FieldControlProps) {
  const { label, hint, kind } = field
  const list = useId()
  const facts = { label, hint, error }
  const text = typeof value === 'string' ? value : ''
  switch (kind) {
    case 'media':
      return (
        <MediaField
          {...facts}
          name={field.name}
          medium={field.medium}
          value={text}
          change={change}
          image={image}
          drawn={drawn}
        />
      )
    case 'texts':
      return <TextList {...facts} value={textsOf(value ?? '')} change={change} />
    case 'text':
      return <TextArea {...facts} rows={field.main ? 4 : 2} value={text} change={change} />
    case 'json':
      return (
        <TextArea {...facts} rows={3} className="font-mono text-xs" spellCheck={false} value={text} change={change} />
      )
    case 'number':
      if (isSlider(field)) return <SliderField {...facts} field={field} value={text} change={change} />
      return (
        <TextField
          {...facts}
          type="number"
          inputMode={field.whole ? 'numeric' : 'decimal'}
          step={field.whole ? 1 : 'any'}
          min={field.minimum}
          max={field.maximum}
          value={text}
          change={change}
        />
      )
    case 'shape':
      return <ShapeField {...facts} options={field.options} value={text} change={change} />
    case 'choice':
    case 'yes-no': {
      const { byDefault, yes, no } = playgroundText
      const options =
        kind === 'yes-no' ? optionsOf({ yes, no }) : field.options.map(id => ({ id, name: id.replaceAll('_', ' ') }))
      return <SelectField {...facts} none={byDefault} options={options} value={text} change={change} />
    }
    default:
      return (
        <>
          <TextField {...facts} value={text} change={change} list={suggestions && list} />
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

interface TextListProps {
  label: string
  hint: string
  error: string | undefined
  value: readonly string[]
  change: (value: string[]) => void
}

/** Several texts, each in a control of its own. */
function TextList({ label, hint, error, value, change }: TextListProps) {
  const id = useId()
  return (
    <fieldset className="space-y-1.5" aria-describedby={describedBy(id, hint, error)}>
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
      <Button small icon={Plus} onClick={() => change([...value, ''])} label={playgroundText.addText} />
      <Hint id={id} hint={hint} error={error} />
    </fieldset>
  )
}
