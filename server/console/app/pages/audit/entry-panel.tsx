import { Button } from '../../components/button.tsx'
import { CopyText } from '../../components/code.tsx'
import { dateText } from '../../components/format.ts'
import { Facts, Notice } from '../../components/page.tsx'
import { SidePanel } from '../../components/panel.tsx'
import { auditText as text } from '../../text/audit.ts'
import { actionName, actorName, changesOf, type Entry, type Names, targetName } from './names.ts'

interface EntryPanelProps {
  /** Undefined if the page of the list does not have it. */
  entry: Entry | undefined
  names: Names
  /** Lists only entries about the object with this id. */
  onlyThis: (id: string) => void
  close: () => void
}

/** One entry: who did it, and each changed field before and after. */
export function EntryPanel({ entry, names, onlyThis, close }: EntryPanelProps) {
  return (
    <SidePanel
      label={text.panel}
      title={entry ? actionName(entry.action) : text.panel}
      about={entry && targetName(entry, names)}
      closeLabel={text.close}
      close={close}
    >
      {entry ? (
        <Shown entry={entry} names={names} onlyThis={onlyThis} />
      ) : (
        <Notice kind="info">{text.notListed}</Notice>
      )}
    </SidePanel>
  )
}

function Shown({ entry, names, onlyThis }: { entry: Entry } & Pick<EntryPanelProps, 'names' | 'onlyThis'>) {
  const changes = changesOf(entry)
  const { id, at: when, actor, target } = entry
  return (
    <div className="space-y-4">
      <Facts
        rows={[
          [text.facts.time, dateText(when)],
          [text.facts.who, actorName(actor, names)],
          [text.facts.from, actor.address],
          [text.facts.id, <CopyText key="target">{target.id}</CopyText>],
          [text.facts.entry, <CopyText key="entry">{id}</CopyText>],
        ]}
      />
      {changes.length > 0 && (
        <div>
          <h3 className="mb-1 font-medium">{text.changes}</h3>
          <dl className="divide-line border-line divide-y rounded-md border">
            {changes.map(({ field, before, after }) => (
              <div key={field} className="px-3 py-1.5">
                <dt className="text-muted font-mono text-xs">{field}</dt>
                <dd className="break-words">
                  {entry.before !== null && (
                    <>
                      <span className="sr-only">{text.changed.before}: </span>
                      <del className="text-bad break-all">{before}</del>
                      <span aria-hidden> → </span>
                    </>
                  )}
                  <span className="sr-only">{text.changed.after}: </span>
                  <ins className="text-good break-all no-underline">{after}</ins>
                </dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      <Button onClick={() => onlyThis(target.id)} label={text.onlyThis} />
    </div>
  )
}
