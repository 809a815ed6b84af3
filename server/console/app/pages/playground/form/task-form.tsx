import { memo } from 'react'
import { useOpened } from '../../../components/fields.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { FieldControl } from './field-control.tsx'
import type { Entered, FormField } from './fields.ts'
import { previewOf } from './previews.ts'

const gridClass = 'grid items-start gap-4 sm:grid-cols-2'
/** Two of these stand side by side. */
const isShort: ReadonlySet<FormField['kind']> = new Set(['line', 'number', 'choice', 'yes-no'])

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
  suggestions?: Readonly<Record<string, readonly string[]>>
  moreText?: string
}) {
  const [imageValue] = [entered.image_url, entered.image].flatMap(one =>
    typeof one === 'string' && one !== '' ? one : [],
  )
  const image = imageValue === undefined ? undefined : previewOf(imageValue)
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
