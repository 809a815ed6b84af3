import { RotateCcw } from 'lucide-react'
import { IconButton } from '../../../components/button.tsx'
import { controlClass, FormField as LabelledField } from '../../../components/fields.tsx'
import { playgroundText as text } from '../../../text/playground.ts'
import type { FormField } from './fields.ts'
import { sliderStep } from './sliders.ts'

interface SliderProps {
  field: FormField
  label: string
  hint: string
  error: string | undefined
  /** Empty for the default. */
  value: string
  change: (value: string) => void
}

/** A number between two ends, by slider or typed. Without a value the slider stands at the default. */
export function SliderField({ field, label, hint, error, value, change }: SliderProps) {
  const { whole, minimum = 0, maximum = 1, byDefault } = field
  const resting = byDefault ?? minimum
  return (
    <LabelledField label={label} hint={hint} error={error}>
      {control => (
        <div className="flex items-center gap-2">
          <input
            type="range"
            min={minimum}
            max={maximum}
            step={sliderStep(field)}
            aria-label={text.slider(label)}
            aria-valuetext={value === '' ? text.byDefaultOf(byDefault) : value}
            value={value === '' || Number.isNaN(Number(value)) ? resting : Number(value)}
            onChange={event => change(event.target.value)}
            className={`accent-accent min-h-9 min-w-0 flex-1 ${value === '' ? 'opacity-60' : ''}`}
          />
          <input
            {...control}
            type="number"
            min={minimum}
            max={maximum}
            step={whole ? 1 : 'any'}
            inputMode={whole ? 'numeric' : 'decimal'}
            value={value}
            placeholder={byDefault === undefined ? text.byDefault : String(byDefault)}
            onChange={event => change(event.target.value)}
            className={`${controlClass} w-24! tabular-nums`}
          />
          {value !== '' && <IconButton icon={RotateCcw} label={text.toDefault(label)} onClick={() => change('')} />}
        </div>
      )}
    </LabelledField>
  )
}
