import { useMutation } from '@tanstack/react-query'
import { type SyntheticEvent, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { api, at, dataOf, paramOf, refresh, type Schema, useAnswer } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { Confirm, Dialog, FormButtons } from '../../components/dialog.tsx'
import { Checkbox, TextField, useOpened } from '../../components/fields.tsx'
import { sizeText } from '../../components/format.ts'
import { Failed, Notice, Queried } from '../../components/page.tsx'
import { asLeft } from '../../components/way-back.ts'
import { modelsText } from '../../text/models.ts'

/** What adding a model would write, and what is missing for it. */
function Proposal({ proposal }: { proposal: Schema<'ModelProposal'> }) {
  const { model, memory, obstacle, advice, lines } = proposal
  const { id, engine } = model as { id?: string; engine?: string }
  const facts = [
    id ?? [],
    engine === undefined ? [] : `${modelsText.facts.engine}: ${engine}`,
    memory === null ? [] : `${modelsText.facts.memory}: ${sizeText(memory)}`,
  ].flat()
  return (
    <div className="space-y-3">
      <h3 className="text-sm font-medium">{modelsText.recognised}</h3>
      <p>{facts.join(' · ')}</p>
      {obstacle !== null && <Notice kind="bad">{modelsText.obstacle(obstacle)}</Notice>}
      {advice.map(sentence => (
        <Notice key={sentence} kind="warning">
          {sentence}
        </Notice>
      ))}
      <h3 className="text-sm font-medium">{modelsText.writes}</h3>
      <ConfigLines {...lines} />
    </div>
  )
}

type Fields = Record<'model' | 'id' | 'context' | 'memory', string>

const bodyOf = ({ model, id, context, memory }: Fields): Schema<'ModelAdd'> => ({
  model: model.trim(),
  id: id.trim() || undefined,
  context: context.trim() ? Number(context) : undefined,
  memory: memory.trim() || undefined,
})

/** Adds a model in two steps: what would be written, then the download. A name that is given is looked up at once. */
export function AddModel({ model, close }: { model: string; close: () => void }) {
  const [, go] = useLocation()
  const [fields, setFields] = useState<Fields>({ model, id: '', context: '', memory: '' })
  const propose = useMutation({
    mutationFn: async (given: Fields) => {
      const answer = await dataOf(api.POST('/api/models', { body: { ...bodyOf(given), dry_run: true } }))
      return answer as Schema<'ModelProposal'>
    },
  })
  const add = useMutation({
    // Whoever saw why it cannot run here, and adds it nevertheless, means it.
    mutationFn: (given: Fields) =>
      dataOf(api.POST('/api/models', { body: { ...bodyOf(given), force: propose.data?.obstacle != null } })),
    onSuccess: (_, given) => {
      announce('good', modelsText.adding(given.model))
      void refresh('models')
      close()
      go('/models/downloads')
    },
  })
  const began = useRef(false)
  useEffect(() => {
    if (model === '' || began.current) return
    began.current = true
    propose.mutate(fields)
  }, [model, fields, propose])

  const param = paramOf(propose.error)
  const field = (name: keyof Fields) => ({
    value: fields[name],
    change: (value: string) => {
      propose.reset()
      setFields(now => ({ ...now, [name]: value }))
    },
    error: param === name ? propose.error?.message : undefined,
  })
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    if (propose.data) add.mutate(fields)
    else propose.mutate(fields)
  }
  const isOfField = param !== undefined && param in fields
  const more = useOpened(isOfField && param !== 'model')
  const failure = add.error ?? (isOfField ? null : propose.error)
  return (
    <Dialog title={modelsText.addTitle} close={close} wide>
      <form onSubmit={submit} className="space-y-4">
        <TextField label={modelsText.addField} hint={modelsText.addHint} required autoFocus {...field('model')} />
        <details ref={more}>
          <summary className="text-accent w-fit">{modelsText.moreSettings}</summary>
          <div className="mt-3 grid gap-3 md:grid-cols-3">
            <TextField label={modelsText.idField} hint={modelsText.idHint} {...field('id')} />
            <TextField
              label={modelsText.contextField}
              hint={modelsText.contextHint}
              type="number"
              min={16}
              {...field('context')}
            />
            <TextField label={modelsText.memoryField} hint={modelsText.memoryHint} {...field('memory')} />
          </div>
        </details>
        {failure && <Failed failure={failure} />}
        <div aria-live="polite">{propose.data && <Proposal proposal={propose.data} />}</div>
        <FormButtons
          action={propose.data ? modelsText.confirmAdd : modelsText.preview}
          busy={propose.isPending || add.isPending}
          close={close}
        />
      </form>
    </Dialog>
  )
}

/** Asks before a model is removed, and shows the lines that infer.yaml loses. */
export function RemoveModel({ id, close }: { id: string; close: () => void }) {
  const [, go] = useLocation()
  const [deletesFiles, setDeletesFiles] = useState(false)
  const remove = (query: { dry_run?: 'true'; delete_files?: 'true' }) =>
    api.DELETE('/api/models/{id}', at({ id }, query))
  const preview = useAnswer(['models', 'remove', id], () => remove({ dry_run: 'true' }), { gcTime: 0 })
  const act = async () => {
    await remove(deletesFiles ? { delete_files: 'true' } : {})
    announce('good', modelsText.removed(id))
    void refresh('models')
    void refresh('tasks')
    go(asLeft('/models'))
  }
  return (
    <Confirm
      title={`${modelsText.remove} ${id}`}
      action={modelsText.confirmRemove}
      act={act}
      close={close}
      isReady={preview.isSuccess}
    >
      <div className="space-y-3">
        <p>{modelsText.removeAbout}</p>
        <Queried query={preview}>{({ lines }) => <ConfigLines {...lines} />}</Queried>
        <Checkbox label={modelsText.deleteFiles} checked={deletesFiles} change={setDeletesFiles} />
      </div>
    </Confirm>
  )
}

/** Lines that a change adds to infer.yaml and removes from it. */
function ConfigLines({ added, removed }: { added: readonly string[]; removed: readonly string[] }) {
  if (added.length + removed.length === 0) return <p className="text-muted">{modelsText.noLines}</p>
  return (
    <div
      tabIndex={0}
      role="group"
      aria-label={modelsText.writes}
      className="bg-raised border-line max-h-72 overflow-auto rounded-md border p-3 font-mono text-xs"
    >
      {removed.map((line, at) => (
        <Line key={`-${at}`} sign="−" name={modelsText.lineRemoved} look="text-bad" line={line} />
      ))}
      {added.map((line, at) => (
        <Line key={`+${at}`} sign="+" name={modelsText.lineAdded} look="text-good" line={line} />
      ))}
    </div>
  )
}

const Line = ({ sign, name, look, line }: { sign: string; name: string; look: string; line: string }) => (
  <div className={`whitespace-pre ${look}`}>
    <span className="sr-only">{name} </span>
    <span aria-hidden className="mr-2 select-none">
      {sign}
    </span>
    {line}
  </div>
)
