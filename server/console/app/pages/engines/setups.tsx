import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { api, at, dataOf, refresh, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { sizeText } from '../../components/format.ts'
import { Meter } from '../../components/meter.tsx'
import { Facts, Failed, Notice, Queried } from '../../components/page.tsx'
import { enginesText as text } from '../../text/engines.ts'
import { shellText } from '../../text/shell.ts'

type Setup = Schema<'EngineList'>['setups'][number]
type Run = NonNullable<Setup['run']>

const notices = { completed: 'good', failed: 'bad', cancelled: 'warning' } as const

/** The setups that were begun since the start of the server, with their progress and log. */
export function SetupRuns({ setups }: { setups: readonly Setup[] }) {
  const begun = setups.flatMap(({ name, run }) => (run ? [{ name, run }] : []))
  if (begun.length === 0) return null
  return (
    <section aria-label={text.runs} className="mb-4 space-y-2">
      {begun.map(({ name, run }) => (
        <RunView key={name} name={name} run={run} />
      ))}
    </section>
  )
}

function RunView({ name, run }: { name: string; run: Run }) {
  const [hasLog, setLog] = useState(false)
  const toggle = (
    <Button small aria-expanded={hasLog} onClick={() => setLog(!hasLog)} label={hasLog ? text.hideLog : text.log} />
  )
  return (
    <div className="space-y-2">
      {run.status === 'running' ? (
        <Progress name={name} run={run} toggle={toggle} />
      ) : (
        <Notice kind={notices[run.status]}>
          <span className="min-w-0 flex-1 whitespace-pre-line">{endText(name, run)}</span>
          {toggle}
        </Notice>
      )}
      {hasLog && <SetupLog name={name} isRunning={run.status === 'running'} />}
    </div>
  )
}

const endText = (name: string, { status, detail }: Run): string =>
  status === 'failed' ? text.failed(name, detail ?? '') : status === 'cancelled' ? text.cancelled(name) : (detail ?? '')

function Progress({ name, run, toggle }: { name: string; run: Run; toggle: ReactNode }) {
  const { can } = useSession()
  const { mutate, isPending } = useAction(
    () => dataOf(api.DELETE('/api/engine-setups/{name}', at({ name }))),
    () => text.stopped(name),
    ['engines'],
  )
  const { step, file, bytes, total_bytes: total } = run
  return (
    <section aria-label={text.running(name)} className="border-line bg-surface space-y-2 rounded-lg border p-3">
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="flex-1 font-medium">{text.running(name)}</h2>
        {toggle}
        {can('admin:write') && <Button small busy={isPending} onClick={() => mutate()} label={shellText.cancel} />}
      </div>
      <p className="text-muted text-xs break-words">{step ?? text.starting}</p>
      {file !== null && (
        <Meter
          label={file}
          value={text.progress(sizeText(bytes), sizeText(total))}
          whole={total}
          parts={[{ name: file, amount: bytes }]}
        />
      )}
    </section>
  )
}

/** What a setup has printed; read again every second while it runs. It stays at its end. */
function SetupLog({ name, isRunning }: { name: string; isRunning: boolean }) {
  const query = useAnswer(
    ['engines', 'log', name, isRunning],
    () => api.GET('/api/engine-setups/{name}', at({ name })),
    { refetchInterval: isRunning ? 1_000 : false },
  )
  const list = useRef<HTMLPreElement>(null)
  useLayoutEffect(() => {
    if (list.current) list.current.scrollTop = list.current.scrollHeight
  }, [query.data])
  return (
    <Queried query={query}>
      {({ log }) => (
        <pre
          ref={list}
          role="log"
          aria-live="off"
          aria-label={text.logOf(name)}
          tabIndex={0}
          className="bg-raised border-line max-h-72 overflow-auto rounded-md border p-3 font-mono text-xs break-words whitespace-pre-wrap"
        >
          {log.length === 0 ? text.noLog : log.join('\n')}
        </pre>
      )}
    </Queried>
  )
}

/** What is installed, from where and under which licence, which a person accepts. */
export function AcceptSetup({ setup, close }: { setup: Setup; close: () => void }) {
  const { name, title, source, license, bytes, for_processor: isForProcessor } = setup
  const begin = useMutation({
    mutationFn: () => dataOf(api.POST('/api/engine-setups/{name}', at({ name }))),
    onSuccess() {
      void refresh('engines')
      close()
    },
  })
  const facts = [
    [text.facts.source, source],
    [text.facts.license, license ?? text.ownLicenses],
    [text.facts.size, bytes === null ? text.sizeLater : text.roughly(sizeText(bytes))],
    [text.facts.build, isForProcessor && text.forProcessor],
  ] as const
  return (
    <Dialog title={text.title(title)} close={close}>
      <Facts rows={facts} />
      <p className="text-muted">{text.next}</p>
      {name === 'speech' && <p className="text-muted">{text.speechNext}</p>}
      {begin.error && <Failed failure={begin.error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={close} label={shellText.cancel} />
        <Button primary busy={begin.isPending} onClick={() => begin.mutate()} label={text.accept} />
      </div>
    </Dialog>
  )
}
