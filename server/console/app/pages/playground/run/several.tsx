import { Checkbox, SelectField } from '../../../components/fields.tsx'
import { playgroundText as text } from '../../../text/playground.ts'

const aspectRatios = ['16:9', '9:16', '1:1'] as const

interface FormatsProps {
  chosen: readonly string[]
  choose: (formats: readonly string[]) => void
}

/** Shapes that are made in one go. */
export const Formats = ({ chosen, choose }: FormatsProps) => (
  <fieldset className="space-y-2">
    <legend className="text-sm font-medium">{text.formats}</legend>
    <p className="text-muted text-xs">{text.formatsHint}</p>
    <div className="flex flex-wrap gap-4">
      {aspectRatios.map(ratio => (
        <Checkbox
          key={ratio}
          label={text.formatNames[ratio]}
          checked={chosen.includes(ratio)}
          change={checked => choose(aspectRatios.filter(one => (one === ratio ? checked : chosen.includes(one))))}
        />
      ))}
    </div>
  </fieldset>
)

const counts = [1, 2, 4, 6, 9] as const

/** How many variations are made, each with a seed of its own. */
export const Variations = ({ count, choose }: { count: number; choose: (count: number) => void }) => (
  <SelectField
    label={text.variations}
    hint={text.variationsHint}
    value={String(count)}
    options={counts.map(String)}
    change={value => choose(Number(value))}
  />
)
