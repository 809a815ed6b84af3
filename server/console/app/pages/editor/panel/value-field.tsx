import { Link2, Plus, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { parse, stringify } from 'yaml'
import type { JsonSchema } from '../../../api/schema.ts'
import { Button, IconButton } from '../../../components/button.tsx'
import { type Option, optionsOf } from '../../../components/fields.tsx'
import { editorText } from '../../../text/editor.ts'
import { segments } from '../document/diagnostics.ts'
import { nodePath, setValue } from '../document/edits.ts'
import { outputText } from '../document/references.ts'
import { fieldKind, firstValue, shapeOf } from '../document/schema.ts'
import { isRecord, type Path } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import { ChoiceField, DraftArea, DraftField, numberIn } from './properties.tsx'

export interface ValueFacts {
  node: string
  /** In the inputs of the node. */
  path: Path
  schema: JsonSchema
  /** Has the definitions that the schema refers to. */
  root: JsonSchema
  value: unknown
  /** Opens the choice of a reference for this place. */
  pick: (path: Path) => void
}

/** The field for one input, by its schema and its present value. */
export function ValueField(facts: ValueFacts) {
  const { node, path, schema, root, value, pick } = facts
  const { apply, readOnly } = useEditor()
  const problems = useProblems()
  const shape = shapeOf(schema, root)
  const name = outputText(path)
  const key = path.join('\n')
  const set = (next: unknown) => apply(setValue([...nodePath(node), 'inputs', ...path], next), `${node}\n${key}`)
  const error = problems.find(
    problem => problem.node === node && problem.field && segments(problem.field).join('\n') === `inputs\n${key}`,
  )?.message
  const common = { label: name, hint: shape.description, error }
  const kind = fieldKind(value, shape.kinds)
  const beside = (control: ReactNode) => (
    <div className="flex items-start gap-1">
      <div className="min-w-0 flex-1">{control}</div>
      {!readOnly && (
        <IconButton icon={Link2} label={editorText.insertReference(name)} className="mt-6" onClick={() => pick(path)} />
      )}
    </div>
  )
  const choice = (options: readonly Option[], chosen: (text: string) => unknown) =>
    beside(
      <ChoiceField
        {...common}
        value={plainText(value)}
        none={editorText.byDefault}
        options={options}
        change={text => set(chosen(text))}
      />,
    )
  if (kind === 'choice') return choice(shape.values.map(String), text => shape.values.find(one => String(one) === text))
  if (kind === 'boolean')
    return choice(
      optionsOf({ true: editorText.yes, false: editorText.no }),
      text => ({ true: true, false: false })[text],
    )
  if (kind === 'number' || kind === 'integer')
    return beside(
      <DraftField
        {...common}
        inputMode={kind === 'integer' ? 'numeric' : 'decimal'}
        value={plainText(value)}
        commit={text => set(numberIn(text))}
      />,
    )
  if (kind === 'text')
    return beside(
      <DraftArea
        {...common}
        value={typeof value === 'string' ? value : ''}
        commit={text => set(text === '' && value === undefined ? undefined : text)}
      />,
    )
  if (kind === 'list' && shape.items) return <ListField facts={facts} items={shape.items} set={set} />
  if (kind === 'object' && Object.keys(shape.properties).length > 0)
    return (
      <Group name={name} description={shape.description}>
        {Object.entries(shape.properties)
          .filter(([member]) => shape.required.includes(member) || (isRecord(value) && value[member] !== undefined))
          .map(([member, part]) => (
            <ValueField
              key={member}
              {...facts}
              path={[...path, member]}
              schema={part}
              value={isRecord(value) ? value[member] : undefined}
            />
          ))}
      </Group>
    )
  return beside(<YamlField {...common} value={value} set={set} />)
}

const plainText = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''

const Group = ({ name, description, children }: { name: string; description: string; children: ReactNode }) => (
  <fieldset className="border-line min-w-0 space-y-3 border-l-2 pl-3">
    <legend className="text-sm font-medium">{name}</legend>
    {description && <p className="text-muted text-xs">{description}</p>}
    {children}
  </fieldset>
)

function ListField({ facts, items, set }: { facts: ValueFacts; items: JsonSchema; set: (value: unknown) => void }) {
  const { path, root, schema, value } = facts
  const { readOnly } = useEditor()
  const name = outputText(path)
  const list = Array.isArray(value) ? value : []
  return (
    <Group name={name} description={shapeOf(schema, root).description}>
      {list.map((one, at) => (
        // An item has no other identity than its position.
        <div key={at} className="flex items-start gap-1">
          <div className="min-w-0 flex-1">
            <ValueField {...facts} path={[...path, at]} schema={items} value={one} />
          </div>
          {!readOnly && (
            <IconButton
              icon={Trash2}
              label={editorText.removeItem(outputText([...path, at]))}
              onClick={() => set(list.length === 1 ? undefined : list.filter((_, place) => place !== at))}
            />
          )}
        </div>
      ))}
      {!readOnly && (
        <Button
          small
          icon={Plus}
          onClick={() => set([...list, firstValue(items, root, 1) ?? ''])}
          label={editorText.addItem(name)}
        />
      )}
    </Group>
  )
}

interface WrittenProps {
  label: string
  hint?: ReactNode
  error?: string | undefined
  value: unknown
  set: (value: unknown) => void
}

/** A value for which there is no better field, as YAML. */
export const YamlField = (props: WrittenProps) => (
  <WrittenField
    {...props}
    said={editorText.structured}
    fault={editorText.notYaml}
    read={parse}
    write={value => (typeof value === 'string' ? value : stringify(value).trimEnd())}
  />
)

/** A value that people copy from or to an API, as JSON. */
export const JsonField = (props: WrittenProps) => (
  <WrittenField
    {...props}
    said={editorText.structuredJson}
    fault={editorText.notJson}
    read={text => JSON.parse(text) as unknown}
    write={value => JSON.stringify(value, null, 2)}
  />
)

function WrittenField({
  value,
  set,
  hint,
  error,
  said,
  fault,
  read,
  write,
  ...rest
}: WrittenProps & {
  said: string
  fault: string
  read: (text: string) => unknown
  write: (value: unknown) => string
}) {
  /** A text that cannot be read stays as it is, to be corrected. */
  const [wrong, setWrong] = useState<string>()
  return (
    <DraftArea
      {...rest}
      code
      hint={
        <>
          {hint} {said}
        </>
      }
      error={wrong === undefined ? error : fault}
      value={wrong ?? (value === undefined ? '' : write(value))}
      commit={text => {
        try {
          const next: unknown = text.trim() === '' ? undefined : read(text)
          setWrong(undefined)
          set(next)
        } catch {
          setWrong(text)
        }
      }}
    />
  )
}
