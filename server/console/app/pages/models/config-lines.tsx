import { modelsText } from '../../text/models.ts'

/** Lines that a change adds to infer.yaml and removes from it. */
export function ConfigLines({ added, removed }: { added: readonly string[]; removed: readonly string[] }) {
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
